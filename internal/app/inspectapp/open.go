package inspectapp

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/compact"
)

// Run opens a store that exists and inspects it; see Inspect.
func Run(ctx context.Context, p process.Settings, tenant string, s compact.Settings, now time.Time, logger *slog.Logger) (r Report, err error) {
	s, err = s.WithDefaults()
	if err != nil {
		return Report{}, err
	}
	store, end, err := process.OpenStore(ctx, p, logger)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, end()) }()
	return Inspect(ctx, store, tenant, s, now)
}
