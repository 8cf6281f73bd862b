package ruleapp

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/store/objstore"
)

// TestPasses: an evaluation is repeated after what passes by itself. Everything else is an error of
// the rule, also where the engine or the storage has wrapped it.
func TestPasses(t *testing.T) {
	away := errors.New("connection refused")
	for _, err := range []error{promql.ErrStorage{Err: away}, &query.GoneError{Err: objstore.ErrNotFound}, fmt.Errorf("expanding series: %w", away)} {
		require.True(t, passes(fmt.Errorf("evaluate: %w", err)), err)
	}
	for _, err := range []error{errors.New("many-to-many matching not allowed"), promql.ErrTooManySamples("query execution")} {
		require.False(t, passes(err), err)
	}
	timeout := fmt.Errorf("%w: %w", promql.ErrQueryTimeout("query execution"), context.DeadlineExceeded)
	for _, err := range []error{
		&query.LimitError{Limit: "samples per selector", Value: 1},
		&query.LimitError{Limit: "seconds per query", Value: 1, Cause: timeout},
		&query.TooOldError{Err: away},
		&query.DamagedError{Object: "o", Err: away},
		&memory.Error{Limit: 1, Needed: 2},
		&fetch.FullError{Limit: 1, Needed: 2},
		&fetch.FullError{Limit: 1, Needed: 2, Memory: true},
	} {
		require.False(t, passes(fmt.Errorf("evaluate: %w", err)), err)
		require.False(t, passes(fmt.Errorf("expanding series: %w", err)), err)
		require.False(t, passes(fmt.Errorf("%w: %w", promql.ErrStorage{Err: err}, err)), err)
	}
}
