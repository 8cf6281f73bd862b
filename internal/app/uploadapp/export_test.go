package uploadapp

import (
	"context"

	"github.com/promlake/promlake/internal/app/process"
)

// Sweep sweeps the store of a stage that New has built, as another process would that is not new.
func Sweep(ctx context.Context, s process.Stage) error { return s.(*stage).sweep(ctx, false) }
