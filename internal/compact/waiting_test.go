package compact

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
)

// target is a scrape of one of some targets: series that came together.
func target(r *rand.Rand, n int, at time.Time) (rows []segment.Row) {
	for i := range 20 + n {
		v := []float64{float64(at.Unix()), 0.25, float64(r.IntN(1000)) / 100, r.Float64(), math.NaN(), math.Copysign(0, -1), float64(i)}[i%7]
		rows = append(rows, segment.Row{
			Labels: labels.FromStrings("__name__", fmt.Sprintf("m%d", i%9), "i", fmt.Sprint(100*n+i)),
			Floats: []segment.Float{{T: at.UnixMilli(), V: v}},
		})
	}
	return rows
}

// stored is write for rows of several windows, which become known to the head.
func (w *writer) stored(tenant string, rows []segment.Row, metadata ...segment.Metadata) {
	byWindow := map[key.Window][]segment.Row{}
	var order []key.Window
	for _, r := range rows {
		for in, part := range windows(r) {
			if byWindow[in] == nil {
				order = append(order, in)
			}
			byWindow[in] = append(byWindow[in], part)
		}
	}
	slices.Sort(order)
	for _, in := range order {
		before := maps.Clone(w.dump)
		w.write(tenant, byWindow[in], metadata...)
		for k := range w.dump {
			if _, ok := before[k]; !ok {
				w.kept.Stored(tenant, k, w.kept.Get(k, int64(len(w.l.body(k)))))
			}
		}
	}
}

// TestMergesOfHeadsAreEqual compacts equal segments twice, once where a head has most of them:
// every object of every block is equal, byte for byte. Now and then samples are late or out of
// order, so that it begins anew, there are start timestamps, histograms and exemplars, or a
// tombstone, and a new table of label sets.
func TestMergesOfHeadsAreEqual(t *testing.T) {
	total := 0
	for seed := range uint64(4) {
		var objects []map[string]string
		for _, from := range []string{"store", "head"} {
			l := newLake(t).at("1:10")
			w := l.writer(1 << 20)
			set := Settings{Policy: plan.Policy{PartAge: partAge, MinPartSegments: 64}, DeletionDelay: 24 * time.Hour}
			if from == "head" {
				set.Recent = w.kept
				w.kept.KeepHeads(1<<22, true, nil)
				w.kept.Head("t").Begin()
			}
			s := l.stage(set, 4)
			r, waited := rand.New(rand.NewPCG(seed, 8)), 0
			var tomb ulid.ULID
			for k := range 9 { // what comes together has neighbouring places in the table
				l.now = clock("1:10").Add(time.Duration(k) * time.Second)
				w.stored("t", target(r, k, l.now))
			}
			for at, n := clock("1:20"), 0; at.Before(clock("2:40")); at, n = at.Add(20*time.Second), n+1 {
				l.now = at
				var rows []segment.Row
				for k := range 3 {
					if r.IntN(10) > 0 {
						rows = append(rows, target(r, 3*(n%3)+k, at.Add(-time.Duration(r.IntN(15_000))*time.Millisecond))...)
					}
				}
				switch event := r.IntN(60 << seed); {
				case event == 0 && len(rows) > 0:
					rows[0].Floats[0].T -= 60_000
				case event == 1 && len(rows) > 0:
					rows[1].Floats[0].ST = at.Add(-time.Hour).UnixMilli()
				case event == 2:
					rows = append(rows, seriesRows(12, 1, at)...)
				case event == 3 && n > 150:
					w.rotate()
				case event == 4 && n > 100:
					l.delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m3"}, "1:30", "2:00")
					tomb = l.snapshot("t").Manifest.LastTombstone
				}
				if len(rows) > 0 {
					w.stored("t", rows, segment.Metadata{Metric: fmt.Sprintf("m%d", r.IntN(7)), Type: "gauge", Help: at.String()})
				}
				if read, ok := w.kept.Head("t").Read(at.UnixMilli(), tomb); ok { // somebody must
					read.Close()
				}
				if n%3 == 0 {
					waited += w.waiting()
					l.untilIdle(s)
					waited -= w.waiting()
				}
			}
			l.at("2:50").untilIdle(s)
			l.check("t")
			total += waited
			found := map[string]string{}
			for _, k := range l.mem.Keys() {
				if strings.Contains(k, "/blocks/") {
					found[k] = string(l.body(k))
				}
			}
			objects = append(objects, found)
		}
		require.NotEmpty(t, objects[0])
		require.Equal(t, objects[0], objects[1])
	}
	require.Greater(t, total, 300)
}

// waiting returns how many segments only the head has.
func (w *writer) waiting() (n int) {
	for k := range w.dump {
		if _, ok := w.kept.Waiting(k, int64(len(w.l.body(k)))); ok {
			n++
		}
	}
	return n
}

// TestMergeReadsWhatAHeadForgets: the head begins anew while its samples are merged.
func TestMergeReadsWhatAHeadForgets(t *testing.T) {
	l := newLake(t).at("1:10")
	w := l.writer(1 << 26)
	w.kept.KeepHeads(1<<26, true, nil)
	w.kept.Head("t").Begin()
	for k := range 3 {
		l.now = clock("1:10").Add(time.Duration(k) * time.Minute)
		rows := target(rand.New(rand.NewPCG(1, 1)), 1000, l.now)
		for i := range rows {
			f := rows[i].Floats[0]
			for n := range int64(150) {
				rows[i].Floats = append(rows[i].Floats, segment.Float{T: f.T + 100*(n+1), V: f.V})
			}
		}
		w.stored("t", rows)
	}
	require.Equal(t, 3, w.waiting())
	s := l.at("1:20").stage(Settings{Policy: plan.Policy{MinPartSegments: 3}, Recent: w.kept}, 4)
	begun := 0
	require.NoError(t, s.UntilIdle(t.Context(), func(string, plan.Job, int64, int64) {
		if begun++; begun == 1 {
			w.kept.Head("t").Restart()
		}
	}, nil))
	memory, read := l.merged()
	require.Equal(t, []int{3, 3}, []int{memory, read})
	require.Equal(t, []string{"part 20260301T0000Z"}, l.levels("t"))
	l.check("t")
}
