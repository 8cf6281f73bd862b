package uploadapp

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/process"
)

// NewWith is New with another grace period of bodies, and other pauses between the attempts of an
// import.
func NewWith(set Settings, im importapp.Settings, grace time.Duration, pauses ...time.Duration) process.Builder {
	return build(set, im, times{pauses, grace})
}

// Sweep sweeps the store of a stage that New has built, as another process would that is not new.
func Sweep(ctx context.Context, s process.Stage) error { return s.(*stage).sweep(ctx, false) }
