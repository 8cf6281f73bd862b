package importapp

import (
	"context"

	"github.com/promlake/promlake/internal/compact/bulk"
)

// Bytes returns the least and the most bytes that a dry run promises.
func (o *Outcome) Bytes() (least, most int64) { return o.preview.bytes(o) }

// Inputs returns the blocks as inputs.
func (t TSDB) Inputs(ctx context.Context) ([]bulk.Input, error) {
	f, err := t.find(ctx, "")
	return f.inputs, err
}

// RemoteInputs returns the windows of a server as inputs.
func RemoteInputs(ctx context.Context, r Remote) ([]bulk.Input, error) {
	f, err := r.find(ctx, "")
	return f.inputs, err
}
