package compact

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

const goldenBucket = "testdata/golden_bucket.txt"

// TestGoldenBucket scripts a day: a segment every half hour, compaction every hour, late data, a
// deletion, a job that died. It asserts every key that is in the store at its milestones. The
// random part of the names of former manifests is left out.
func TestGoldenBucket(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}}, 2)
	var got strings.Builder
	milestone := func(what string) {
		l.check("t")
		fmt.Fprintf(&got, "# %s %s\n", l.now.Format("2006-01-02T15:04Z"), what)
		for _, k := range l.mem.Keys() {
			if _, id, err := key.ParseManifestCopy(k); err == nil {
				k = key.ManifestsPrefix("t") + id.String()[:10] + "….json"
			}
			fmt.Fprintln(&got, k)
		}
	}
	for h := range 24 {
		l.scrape("t", fmt.Sprintf("%d:00", h), fmt.Sprintf("%d:00", h+1), 30*time.Minute, 12)
		l.at(fmt.Sprintf("%d:12", h+1)).untilIdle(s)
		switch h {
		case 0:
			milestone("an open window")
		case 1:
			milestone("a 2h block, and what it was made of")
		case 11:
			milestone("12h are over")
		}
	}
	milestone("the day is over")
	dead := catalog.BlockID{Level: key.L2h, Window: key.WindowOf(l.now.UnixMilli()), ID: idAt(l.now, 7)}
	l.putJunk(dead.Key("t").File("series.parquet"))
	l.at("25:00").untilIdle(s)
	l.write("t", append(seriesRows(12, 5, clock("7:10")), burst(clock("7:20"))))
	l.delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m3"}, "0:00", "24:00")
	l.at("25:30").untilIdle(s)
	milestone("late data and a deletion are applied, the dead job waits")
	for _, at := range []string{"26:00", "26:30", "27:00"} {
		l.at(at).untilIdle(s)
	}
	milestone("all that is left")
	if *update {
		require.NoError(t, os.WriteFile(goldenBucket, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(goldenBucket)
	require.NoError(t, err)
	require.Equal(t, string(want), got.String(), "run with -update if this is meant")
}

func (l *lake) putJunk(k string) {
	l.t.Helper()
	_, err := l.store.Put(l.t.Context(), k, strings.NewReader("junk"), objstore.Condition{IfAbsent: true})
	require.NoError(l.t, err)
}
