package query_test

import (
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
)

// promqltestSkips maps the files of upstream's suite that the stage does not pass to the reason. It
// only shrinks.
var promqltestSkips = map[string]string{}

// soakOnly names the large files that run over the mixture of layouts only in make soak
// (PROMLAKE_SOAK=1): they pass, but take minutes. They always run over segments and over blocks.
var soakOnly = []string{"testdata/aggregators.test", "testdata/histograms.test", "testdata/native_histograms.test", "testdata/operators.test"}

// soak reports whether tests take as long as make soak has time for.
var soak = os.Getenv("PROMLAKE_SOAK") != ""

// rounds is the number of rounds of a random test: n, and ten times as many in make soak.
func rounds(n int) int {
	if soak {
		n *= 10
	}
	return n
}

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
		if s.layout == "mixture" && slices.Contains(soakOnly, name) && !soak {
			t.Skip("runs over the mixture in make soak")
		}
		fn(t)
	})
}

// TestBuiltin runs upstream's acceptance suite with the stage's engine over real segments and
// blocks that are read through DuckDB: over every layout with everything evaluated in SQL that can
// be, over blocks with the default division, and over segments with nothing pushed and no room for
// series tables. The engine has the feature flags that the suite expects.
func TestBuiltin(t *testing.T) {
	flags := func(minPushed int64) query.Settings {
		return query.Settings{DelayedNameRemoval: true, UseStartTimestamps: true, Threads: 1, MinPushedSamples: minPushed}
	}
	for _, layout := range layouts {
		t.Run("pushed/"+layout.name, func(t *testing.T) { builtin(t, layout.name, layout.write, flags(-1)) })
	}
	t.Run("default/"+layouts[1].name, func(t *testing.T) { builtin(t, layouts[1].name, layouts[1].write, flags(50_000)) })
	crowded := flags(math.MaxInt64)
	crowded.IndexCacheBytes = 1
	t.Run("plain/"+layouts[0].name, func(t *testing.T) { builtin(t, layouts[0].name, layouts[0].write, crowded) })
}

// builtin runs the suite over one layout, and requires that something was pushed down if pushdown
// was enabled.
func builtin(t *testing.T, name string, write writer, flags query.Settings) {
	t.Parallel()
	engine := newLake(t, newDirStore(t), flags).Engine()
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
		l := newLake(tb, newDirStore(tb), flags)
		l.commits = func(tenantID string, rows []segment.Row) { write(l, tenantID, rows) }
		tb.Cleanup(func() {
			mu.Lock()
			defer mu.Unlock()
			pushed += l.counted("promlake_query_subtrees_total")
		})
		return l
	})
}
