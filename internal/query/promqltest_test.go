package query_test

import (
	"os"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/segment"
)

// promqltestSkips names the files of upstream's suite that the stage does not pass, with the reason. It only shrinks.
var promqltestSkips = map[string]string{}

// soakOnly names the large files that run over the mixture of layouts in make soak alone (PROMLAKE_SOAK=1): they pass, but take minutes,
// and run over segments and over blocks always.
var soakOnly = []string{"testdata/aggregators.test", "testdata/histograms.test", "testdata/native_histograms.test", "testdata/operators.test"}

// skipping is a promqltest.TBRun that leaves out what promqltestSkips names, and over the mixture what soakOnly names.
type skipping struct {
	*testing.T
	layout string
}

func (s skipping) Run(name string, fn func(*testing.T)) bool {
	return s.T.Run(name, func(t *testing.T) {
		if why, ok := promqltestSkips[name]; ok {
			t.Skip(why)
		}
		if s.layout == "mixture" && slices.Contains(soakOnly, name) && os.Getenv("PROMLAKE_SOAK") == "" {
			t.Skip("runs over the mixture in make soak")
		}
		fn(t)
	})
}

// TestBuiltin runs upstream's acceptance suite with the stage's engine over real segments and blocks that are read through DuckDB. The engine
// has the feature flags that the suite expects.
func TestBuiltin(t *testing.T) {
	flags := query.Settings{DelayedNameRemoval: true, UseStartTimestamps: true, Threads: 1}
	engine := newLake(t, newDirStore(t), flags).Engine()
	for _, layout := range layouts {
		t.Run(layout.name, func(t *testing.T) {
			t.Parallel()
			promqltest.RunBuiltinTestsWithStorage(skipping{t, layout.name}, engine, func(tb testing.TB) storage.Storage {
				l := newLake(tb, newDirStore(tb), flags)
				l.commits = func(tenantID string, rows []segment.Row) { layout.write(l, tenantID, rows) }
				return l
			})
		})
	}
}
