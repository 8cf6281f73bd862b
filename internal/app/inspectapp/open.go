package inspectapp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/objstore"
)

// Run opens a store that exists and inspects it; see Inspect.
func Run(ctx context.Context, p process.Settings, tenant string, s compact.Settings, now time.Time, logger *slog.Logger) (r Report, err error) {
	s, err = s.WithDefaults()
	if err != nil {
		return Report{}, err
	}
	var store objstore.Store
	_, end, err := process.Open(ctx, p, logger, func(_ context.Context, parts process.Parts) (process.Stage, error) {
		store = parts.Store
		return process.Idle{}, nil
	})
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return Inspect(ctx, store, tenant, s, now)
}
