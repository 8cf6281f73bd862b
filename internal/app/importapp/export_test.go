package importapp

import (
	"context"

	"github.com/promlake/promlake/internal/compact/bulk"
)

// Inputs returns the blocks as inputs.
func (t TSDB) Inputs(ctx context.Context) ([]bulk.Input, error) {
	f, err := t.find(ctx, "")
	return f.inputs, err
}
