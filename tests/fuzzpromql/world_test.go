package fuzzpromql

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/internal/store/recent"
)

// withoutStatements is the name of the way that computes all operations over few values directly.
const withoutStatements = "without statements"

// way is settings with which Promlake evaluates.
type way struct {
	name     string
	remote   bool // objects are fetched
	head     bool // the process has stored the objects of layout head
	settings query.Settings
}

// No way may change an answer, except for when names are removed.
var ways = []way{
	{"in place", false, true, query.Settings{MinPushedSamples: -1}},
	{"fetched, delayed name removal", true, false, query.Settings{MinPushedSamples: -1, DelayedNameRemoval: true, UseStartTimestamps: true}},
	{withoutStatements, false, true, query.Settings{}},
	{"in parts, tables of matching rows", false, false, query.Settings{MinPushedSamples: -1, QueryMemoryBytes: partsMemory, IndexCacheBytes: 1}},
}

// partsMemory is so small that statements are divided into parts, and some are rejected.
const partsMemory = 32 << 10

// world is the same data in upstream's storage and in Promlake's, with an engine for each of the
// ways.
type world struct {
	upstream storage.Queryable
	metrics  *prometheus.Registry
	engines  []promql.QueryEngine
	stages   []*query.Stage
}

// remote hides that a store is a directory, so that objects are fetched.
type remote struct{ objstore.Store }

func newWorld(t *testing.T, seed uint64, d data) *world {
	t.Helper()
	store, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	var seq uint64
	kept := recent.New(64<<20, nil, func() time.Time { return midnight })
	kept.KeepHeads(64<<20, true, nil)
	for i, l := range layouts {
		l.write(lake{t, store, l.tenant, &seq, kept}, rand.New(rand.NewPCG(seed, uint64(100+i))), d)
	}
	w := &world{upstream: plainly{d.upstream(t)}, metrics: prometheus.NewRegistry()}
	for i, way := range ways {
		var s objstore.Store = store
		if way.remote {
			s = remote{store}
		}
		settings := way.settings
		if way.head {
			settings.Recent = kept
		}
		reg := prometheus.WrapRegistererWith(prometheus.Labels{"z_way": fmt.Sprint(i)}, w.metrics)
		st, err := query.New(settings, s, reg, slog.New(slog.DiscardHandler), now)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, st.Close()) })
		w.stages = append(w.stages, st)
		w.engines = append(w.engines, newEngine(st.Settings()))
	}
	return w
}

// newEngine returns upstream's engine with the stage's options.
func newEngine(s query.Settings) promql.QueryEngine {
	return promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: s.MaxSamples, Timeout: s.Timeout, LookbackDelta: s.LookbackDelta,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() }, EnableAtModifier: true, EnableNegativeOffset: true,
		EnableDelayedNameRemoval: s.DelayedNameRemoval, UseStartTimestamps: s.UseStartTimestamps, Parser: parser.NewParser(query.ParserOptions()),
	})
}

// count adds the pushed parts of all stages to the tally.
func (w *world) count(t *testing.T, s *tally) {
	t.Helper()
	families, err := w.metrics.Gather()
	require.NoError(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			switch f.GetName() {
			case "promlake_query_subtrees_total":
				n := m.GetCounter().GetValue()
				direct := labelOf(m, "z_way") == fmt.Sprint(slices.IndexFunc(ways, func(w way) bool { return w.name == withoutStatements }))
				if s.pushed += n; direct {
					s.computed += n
				}
				if labelOf(m, "driver") == "duckdb" {
					s.statements += n
					require.False(t, direct && n > 0, "statements over few values")
				}
			case "promlake_query_head_queries_total":
				s.heads += m.GetCounter().GetValue()
			case "promlake_query_kept_queries_total":
				s.kept += m.GetCounter().GetValue()
			}
		}
	}
}

func labelOf(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
