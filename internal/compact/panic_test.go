package compact

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestPanics: a panic while a tenant is planned, or in one of its jobs, is an error of that tenant.
// The sources stay live, and a later cycle goes on.
func TestPanics(t *testing.T) {
	for _, where := range []string{"manifest", ".parquet"} {
		t.Run(where, func(t *testing.T) { panicsAt(t, where) })
	}
}

func panicsAt(t *testing.T, where string) {
	l := newLake(t)
	broken := false
	l.each = func(c memstore.Call) memstore.Fault {
		if broken && c.Op == memstore.Get && strings.Contains(c.Key, where) {
			panic("a defect")
		}
		return memstore.Fault{}
	}
	s := l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}}, 2)
	l.at("0:10").write("t", seriesRows(3, 1, clock("0:05")))
	l.at("0:11").write("t", seriesRows(3, 2, clock("0:06")))
	l.at("2:30")
	broken = true
	require.ErrorIs(t, s.UntilIdle(t.Context(), nil, nil), telemetry.ErrPanic)
	broken = false
	require.Len(t, l.snapshot("t").Segments, 2)
	require.NoError(t, s.UntilIdle(t.Context(), nil, nil))
	l.check("t")
	require.Empty(t, l.snapshot("t").Segments)
}
