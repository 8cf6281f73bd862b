package fuzzpromql

import (
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

// TestKept: queries of which slices are kept have the answers of the same queries of which none is,
// bit by bit, with their notes and their errors.
func TestKept(t *testing.T) {
	n, seed := setting(t, "PROMLAKE_FUZZPROMQL_QUERIES", 500), setting(t, "PROMLAKE_FUZZPROMQL_SEED", 0)
	store, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	var seq uint64
	i := slices.IndexFunc(layouts, func(l struct {
		tenant string
		write  func(lake, *rand.Rand, data)
	}) bool {
		return l.tenant == "blocks-24h"
	})
	layouts[i].write(lake{t, store, layouts[i].tenant, &seq, nil}, rand.New(rand.NewPCG(seed, uint64(100+i))), newData(seed))
	ctx, registry := tenant.With(t.Context(), layouts[i].tenant), prometheus.NewRegistry()
	stage := func(s query.Settings, reg prometheus.Registerer) *query.Stage {
		st, err := query.New(s, store, reg, slog.New(slog.DiscardHandler), now)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		return st
	}
	plain, kept := stage(query.Settings{}, nil), stage(query.Settings{KeptAnswersSamples: 1, KeptWindow: 2 * time.Minute}, registry)
	hits := func() (sum float64) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "promlake_query_kept_answers_total" && labelOf(m, "result") == "hit" {
					sum += m.GetCounter().GetValue()
				}
			}
		}
		return sum
	}
	reports, used := 0, 0
	for i := seed; i < seed+n; i++ {
		a := newAsk(i)
		if a.step == 0 {
			a.step, a.end = 60_000, a.start+30*60_000
		}
		for round := range 3 {
			before := hits()
			got := run(ctx, kept.Engine(), kept, a)
			kept.WaitKept(ctx)
			if hits() == before { // it was evaluated as any query is
				continue
			}
			used++
			difference := ""
			same := func(int) bool {
				want := run(ctx, plain.Engine(), plain, a)
				if difference = got.differs(want); difference == "" {
					difference = values(got, want, exact, nil)
				}
				return difference == ""
			}
			// Upstream's own answer may differ from one time to the next, where it walks over maps.
			if !slices.ContainsFunc(make([]int, orders), same) {
				t.Errorf("round %d of %v\n  differs: %s", round, a, difference)
				if reports++; reports > maxReports {
					t.FailNow()
				}
			}
			if round == 1 {
				a.start, a.end = a.start+a.step, a.end+a.step
			}
		}
	}
	t.Logf("%d queries; %d answers have %.0f kept slices", n, used, hits())
	if n >= 500 {
		require.Greater(t, used, int(n/2))
	}
}
