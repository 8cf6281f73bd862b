package promql

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// promqltestSkips maps the files of upstream's suite that the stage does not pass to the reason. It
// only shrinks.
var promqltestSkips = map[string]string{}

// soakOnly names the large files that run over the mixture of layouts only in make soak
// (PROMLAKE_SOAK=1): they pass, but take minutes. They always run over segments and over blocks.
var soakOnly = []string{"testdata/aggregators.test", "testdata/histograms.test", "testdata/native_histograms.test", "testdata/operators.test"}

// skipping is a promqltest.TBRun that skips the files in promqltestSkips and, over the mixture,
// those in soakOnly.
type skipping struct {
	*testing.T
	layout string
}

func (s skipping) Run(name string, fn func(*testing.T)) bool {
	return s.T.Run(name, func(t *testing.T) {
		if why, ok := promqltestSkips[name]; ok {
			t.Skip(why)
		}
		if s.layout == "mixture" && slices.Contains(soakOnly, name) && !laketest.Soak {
			t.Skip("runs over the mixture in make soak")
		}
		fn(t)
	})
}

// TestBuiltin runs upstream's acceptance suite with the stage's engine over real segments and
// blocks: with everything evaluated in DuckDB that can be, over blocks and over the mixture; with
// the default division, over segments; and over segments with nothing pushed and no room for series
// tables. The engine has the feature flags that the suite expects. The mixture also reads segments
// below statements, and blocks are read with both divisions by the same code, so that the other
// layouts run in make soak.
func TestBuiltin(t *testing.T) {
	flags := func(minPushed int64) query.Settings {
		return query.Settings{DelayedNameRemoval: true, UseStartTimestamps: true, Threads: 1, MinPushedSamples: minPushed}
	}
	for i, layout := range laketest.Layouts {
		if i > 0 || laketest.Soak {
			t.Run("pushed/"+layout.Name, func(t *testing.T) { builtin(t, layout.Name, layout.Write, flags(-1)) })
		}
		if i == 0 || laketest.Soak {
			t.Run("default/"+layout.Name, func(t *testing.T) { builtin(t, layout.Name, layout.Write, flags(50_000)) })
		}
	}
	crowded := flags(math.MaxInt64)
	crowded.IndexCacheBytes = 1
	t.Run("plain/segments", func(t *testing.T) { builtin(t, "segments", laketest.Layouts[0].Write, crowded) })
}

// builtin runs the suite over one layout, and requires that something was pushed down if pushdown
// was enabled.
func builtin(t *testing.T, name string, write laketest.Writer, flags query.Settings) {
	t.Parallel()
	engine := laketest.New(t, laketest.NewDir(t), flags).Engine()
	var mu sync.Mutex
	pushed := 0.0
	t.Cleanup(func() {
		if flags.MinPushedSamples < math.MaxInt64 {
			require.Greater(t, pushed, 1000.0)
		} else {
			require.Zero(t, pushed)
		}
	})
	promqltest.RunBuiltinTestsWithStorage(skipping{t, name}, engine, func(tb testing.TB) storage.Storage {
		l := laketest.New(tb, laketest.NewDir(tb), flags)
		l.Commits = func(tenantID string, rows []segment.Row) { write(l, tenantID, rows) }
		tb.Cleanup(func() {
			mu.Lock()
			defer mu.Unlock()
			pushed += l.Counted("promlake_query_subtrees_total")
		})
		return l
	})
}
