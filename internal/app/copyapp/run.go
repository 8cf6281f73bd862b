package copyapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// Settings name what is copied.
type Settings struct {
	From, To string   // URLs of stores
	Tenants  []string // none: all
	Process  process.Settings
}

// Run opens both stores, checks that the destination keeps its promises, and calls f with the
// tenants to copy.
func Run(ctx context.Context, s Settings, logger *slog.Logger, f func(from, to objstore.Store, tenants []string) error) (err error) {
	s.Process.Store = s.From
	from, end, err := process.OpenStore(ctx, s.Process, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	to, err := storeurl.Open(ctx, s.To)
	if err != nil {
		return err
	}
	if err := probe.Check(ctx, to); err != nil {
		return fmt.Errorf("destination: %w", err)
	}
	tenants := s.Tenants
	if len(tenants) == 0 {
		if tenants, err = catalog.Tenants(ctx, from); err != nil {
			return err
		}
		if tenants, err = rulestore.AddTenants(ctx, from, tenants); err != nil {
			return err
		}
	}
	return f(from, to, tenants)
}
