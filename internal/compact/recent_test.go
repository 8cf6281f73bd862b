package compact

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/compacttest"
)

// writer is an ingest stage that keeps what it stores.
type writer struct {
	l     *lake
	kept  *recent.Segments
	table *series.Table
	// labels are those of table.
	labels *recent.Labels
	// dump is the content of what was kept, encoded, by key.
	dump map[string]string
}

func (l *lake) writer(limit int64) *writer {
	w := &writer{l: l, kept: recent.New(limit, nil, l.clock), dump: map[string]string{}}
	w.rotate()
	return w
}

// rotate begins another table.
func (w *writer) rotate() {
	w.table = series.NewTable(3)
	v := w.table.View()
	w.labels = recent.NewLabels(&v)
}

// of returns the content of rows, whose label sets are in the table then.
func (w *writer) of(rows []segment.Row, metadata ...segment.Metadata) *recent.Segment {
	w.l.t.Helper()
	b, err := compacttest.Batch(w.table, rows, metadata...)
	require.NoError(w.l.t, err)
	w.labels.Extend(b.View)
	return w.kept.Of(b, w.labels)
}

// write is lake.write for rows of one window.
func (w *writer) write(tenant string, rows []segment.Row, metadata ...segment.Metadata) {
	t := w.l.t
	t.Helper()
	before := map[string]bool{}
	for _, k := range w.l.mem.Keys() {
		before[k] = true
	}
	w.l.write(tenant, rows, metadata...)
	for _, k := range w.l.mem.Keys() {
		if before[k] {
			continue
		}
		c := w.of(rows, metadata...)
		w.kept.Put(k, int64(len(w.l.body(k))), c)
		if c != nil {
			w.dump[k] = dump(c)
		}
	}
}

func dump(c *recent.Segment) string {
	text := fmt.Sprint(c.Rows, c.V, c.ST, c.Exemplars, c.Metadata, c.AppendTimes(nil, 0, len(c.V)))
	for _, r := range c.Hists {
		for _, h := range r.Samples {
			text += fmt.Sprint(r.Row, h.T, h.H, h.FH)
		}
	}
	return text
}

// body returns an object.
func (l *lake) body(k string) []byte {
	l.t.Helper()
	r, _, err := l.mem.Get(l.t.Context(), k, 0, -1)
	require.NoError(l.t, err)
	data, err := io.ReadAll(r)
	require.NoError(l.t, err)
	require.NoError(l.t, r.Close())
	return data
}

// merged returns how many segments the last stage took from memory, and how many it read.
func (l *lake) merged() (memory, read int) {
	l.t.Helper()
	all, err := l.reg.Gather()
	require.NoError(l.t, err)
	for _, f := range all {
		if f.GetName() != "promlake_compact_merged_segments_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == "memory" {
				memory = int(m.GetCounter().GetValue())
			} else {
				read = int(m.GetCounter().GetValue())
			}
		}
	}
	return memory, read
}

// TestMergesOfMemoryAreEqual compacts equal segments twice, once from memory: every object of every
// block is equal, byte for byte, and what is in memory does not change.
func TestMergesOfMemoryAreEqual(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  Settings
		all  bool // merges read no segment
	}{
		{"all in memory", Settings{Policy: plan.Policy{MinPartSegments: 4}}, true},
		{"whole windows", Settings{Policy: plan.Policy{MinPartSegments: 64}}, true},
		{"few sources", Settings{Policy: plan.Policy{MinPartSegments: 2, MaxSources: 3, MaxSegments: 3}}, false},
		{"slices", Settings{Policy: plan.Policy{MinPartSegments: 64, MaxJobSamples: 100}}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var objects []map[string]string
			for _, from := range []string{"store", "memory"} {
				l := newLake(t)
				w := l.writer(1 << 20)
				set := tc.set
				set.DeletionDelay = 24 * time.Hour // all blocks stay
				if from == "memory" {
					set.Recent = w.kept
				}
				s := l.stage(set, 4)
				memory, read := 0, 0
				r := rand.New(rand.NewPCG(8, 8))
				for at := clock("0:00"); at.Before(clock("4:00")); at = at.Add(5 * time.Minute) {
					l.now = at
					rows := seriesRows(15+r.IntN(20), float64(r.IntN(50)), at.Add(-time.Minute), at.Add(-time.Duration(r.IntN(50))*time.Second))
					if w := key.WindowOf(at.UnixMilli()); key.WindowOf(at.Add(-time.Minute).UnixMilli()) != w {
						rows = seriesRows(20, 1, at)
					}
					if r.IntN(3) == 0 {
						for i := range rows {
							for k := range rows[i].Floats {
								rows[i].Floats[k].ST = at.Add(-time.Hour).UnixMilli()
							}
						}
					}
					w.write("t", rows, segment.Metadata{Metric: fmt.Sprintf("m%d", r.IntN(7)), Type: "gauge", Help: at.String()})
					if at.Minute() == 40 {
						l.delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m3"}, "0:00", "0:50")
					}
					l.now = at.Add(2 * time.Minute)
					l.untilIdle(s)
				}
				l.at("4:15").untilIdle(s)
				l.check("t")
				memory, read = l.merged()
				if from == "store" {
					require.Zero(t, memory)
					require.NotZero(t, read)
				} else {
					require.NotZero(t, memory)
					require.True(t, !tc.all || read == 0, "%d segments were read, %d were in memory", read, memory)
				}
				found := map[string]string{}
				for _, k := range l.mem.Keys() {
					if strings.Contains(k, "/blocks/") {
						found[k] = string(l.body(k))
					}
				}
				objects = append(objects, found)
				for k, want := range w.dump {
					if c := w.kept.Get(k, int64(len(l.body(k)))); c != nil {
						require.Equal(t, want, dump(c), "%s changed", k)
					}
				}
			}
			require.NotEmpty(t, objects[0])
			require.Equal(t, objects[0], objects[1])
		})
	}
}

// TestMergeChangesNoSegmentInMemory merges what other jobs still use.
func TestMergeChangesNoSegmentInMemory(t *testing.T) {
	l := newLake(t)
	w := l.writer(1 << 20)
	for i := range 3 {
		l.now = clock("0:10").Add(time.Duration(i) * time.Minute)
		w.write("t", seriesRows(25, float64(i), l.now, l.now.Add(time.Second)))
	}
	l.at("0:20").delete("t", catalog.Matcher{Type: "=", Name: "__name__", Value: "m1"}, "0:11", "0:30")
	s := l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}, Recent: w.kept}, 4)
	type kept struct {
		content *recent.Segment
		want    string
	}
	var all []kept
	for k, want := range w.dump {
		all = append(all, kept{w.kept.Get(k, int64(len(l.body(k)))), want})
		require.Equal(t, want, dump(all[len(all)-1].content))
	}
	l.untilIdle(s)
	memory, read := l.merged()
	require.Equal(t, []int{3, 0}, []int{memory, read})
	for _, x := range all {
		require.Equal(t, x.want, dump(x.content))
	}
	for k := range w.dump {
		require.Nil(t, w.kept.Get(k, int64(len(l.body(k)))), "a merged segment stays in memory")
	}
	l.check("t")
}

// TestWhatIsNotInMemoryIsRead: segments of another process, of a table before, of another tenant with
// equal names, and objects that are not those that were stored.
func TestWhatIsNotInMemoryIsRead(t *testing.T) {
	for _, tc := range []struct {
		name  string
		write func(l *lake, w *writer, i int, rows []segment.Row)
	}{
		{"another process", func(l *lake, w *writer, i int, rows []segment.Row) {
			if i == 1 {
				l.write("t", rows)
			} else {
				w.write("t", rows)
			}
		}},
		{"another table", func(_ *lake, w *writer, i int, rows []segment.Row) {
			if i == 1 {
				w.rotate()
			}
			w.write("t", rows)
		}},
		{"another tenant", func(l *lake, w *writer, _ int, rows []segment.Row) {
			before := l.mem.Keys()
			l.write("t", rows)
			for _, k := range l.mem.Keys() {
				if !slices.Contains(before, k) {
					w.kept.Put(strings.Replace(k, "v1/t/", "v1/u/", 1), int64(len(l.body(k))), w.of(rows))
				}
			}
		}},
		{"another size", func(l *lake, w *writer, _ int, rows []segment.Row) {
			other := w.of(seriesRows(3, 999, clock("0:01")))
			before := l.mem.Keys()
			l.write("t", rows)
			for _, k := range l.mem.Keys() {
				if !slices.Contains(before, k) {
					w.kept.Put(k, int64(len(l.body(k))+1), other)
				}
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLake(t)
			w := l.writer(1 << 20)
			for i := range 3 {
				l.now = clock("0:10").Add(time.Duration(i) * time.Minute)
				tc.write(l, w, i, seriesRows(12, float64(i), l.now))
			}
			s := l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}, Recent: w.kept}, 4)
			l.at("0:20").untilIdle(s)
			memory, read := l.merged()
			require.Equal(t, []int{0, 3}, []int{memory, read})
			l.check("t")
			require.Len(t, l.snapshot("t").Blocks, 1)
		})
	}
}
