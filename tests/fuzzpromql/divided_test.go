package fuzzpromql

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// worker is a query stage behind the HTTP API.
type worker struct {
	promql.QueryEngine
	*query.Stage
}

// TestDivided: queries that are divided over workers have the answers of the same queries that are
// not, bit by bit, with their notes and their errors.
func TestDivided(t *testing.T) {
	n, seed := setting(t, "PROMLAKE_FUZZPROMQL_QUERIES", 1500), setting(t, "PROMLAKE_FUZZPROMQL_SEED", 0)
	store, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	var seq uint64
	for i, l := range layouts {
		l.write(lake{t, store, l.tenant, &seq, nil}, rand.New(rand.NewPCG(seed, uint64(100+i))), newData(seed))
	}
	stage := func(s query.Settings, remotely bool, reg prometheus.Registerer) *query.Stage {
		var from objstore.Store = store
		if remotely {
			from = remote{store}
		}
		st, err := query.New(s, from, reg, slog.New(slog.DiscardHandler), now)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		return st
	}
	var workers []string
	var first http.Handler
	for i := range 3 { // none may change an answer
		st := stage(query.Settings{MinPushedSamples: []int64{0, -1, 10}[i]}, i == 2, nil)
		s := settings.Default[api.Settings]()
		s.Parser = query.ParserOptions()
		h, err := api.New(s, worker{st.Engine(), st}, nil, now, slog.New(slog.DiscardHandler), nil)
		require.NoError(t, err)
		if i == 0 {
			first = h
		}
		srv := httptest.NewServer(h)
		t.Cleanup(srv.Close)
		workers = append(workers, strings.TrimPrefix(srv.URL, "http://"))
	}
	plain := stage(query.Settings{}, false, nil)
	registry := prometheus.NewRegistry()
	var divided []*query.Stage
	for i := range workers {
		reg := prometheus.WrapRegistererWith(prometheus.Labels{"z_workers": fmt.Sprint(i)}, registry)
		divided = append(divided, stage(query.Settings{Workers: workers[:i+1], DivideBytes: 1, DivideWindows: -1}, i == 1, reg))
	}
	lambdatest.StartAPI(t, lambdatest.Handler(first, 3_000)) // many answers are larger
	divided = append(divided, stage(query.Settings{Workers: []string{"lambda:f"}, DivideInvocations: 4, DivideBytes: 1, DivideWindows: -1}, false, prometheus.WrapRegistererWith(prometheus.Labels{"z_workers": "f"}, registry)))
	pieces := func(result string) (sum float64) {
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "promlake_query_pieces_total" && labelOf(m, "result") == result {
					sum += m.GetCounter().GetValue()
				}
			}
		}
		return sum
	}
	reports, several := 0, 0
	for i := seed; i < seed+n; i++ {
		a := newAsk(i)
		if a.step == 0 {
			a.step, a.end = 60_000, a.start+30*60_000
		}
		if a.tenant == "head" {
			a.tenant = "segments"
		}
		ctx, before := tenant.With(t.Context(), a.tenant), pieces("ok")+pieces("whole")
		by := divided[i%uint64(len(divided))]
		got := run(ctx, by.Engine(), by, a)
		if pieces("ok")+pieces("whole") == before {
			continue
		}
		several++
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
			t.Errorf("%v\n  differs: %s", a, difference)
			if reports++; reports > maxReports {
				t.FailNow()
			}
		}
	}
	t.Logf("%d queries, %d of them divided; pieces: %.0f ok, %.0f whole, %.0f large", n, several, pieces("ok"), pieces("whole"), pieces("large"))
	if n >= 1000 {
		require.Greater(t, several, int(n/4), "divided queries")
		require.Positive(t, pieces("large"))
	}
	require.Zero(t, pieces("failed"))
}
