package tenantapp

import (
	"context"
	"log/slog"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/objstore"
)

// Open opens a store that exists. The caller calls end.
func Open(ctx context.Context, url string, logger *slog.Logger) (store objstore.Store, end func() error, err error) {
	p := process.DefaultSettings()
	p.Store = url
	_, end, err = process.Open(ctx, p, logger, func(_ context.Context, parts process.Parts) (process.Stage, error) {
		store = parts.Store
		return process.Idle{}, nil
	})
	return store, end, err
}
