package recent_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/recent"
)

// written is a segment of TestParts.
type written struct {
	name   string
	window int64
	at     time.Time
	epoch  int // changes when the head cannot know what was before
	kept   bool
	rows   map[string][]segment.Float // by label i
}

// opened is a part, and what it must be.
type opened struct {
	part  *recent.Part
	view  *series.View
	from  *written
	epoch int
	want  map[string][]segment.Float
}

// TestParts compares the samples of segments in a head with those that were stored, while others
// are stored: in the order of time for each series, but not beyond. Segments of two windows
// alternate, and some are stored twice.
func TestParts(t *testing.T) {
	found := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 5))
		x := newStoring(t, 1<<20)
		x.head().Begin()
		window := int64(begun) / 7_200_000
		x.clock.t = time.UnixMilli((window+1)*7_200_000 - 400_000) // before the end of a window
		last, epoch, gaps := map[int]int64{}, 0, seed%2 == 1       // with gaps, some segments are scattered
		var all []written
		var parts []opened
		store := func(w int64, rows []segment.Row, late bool) {
			if len(rows) == 0 {
				return
			}
			s := written{window: w, at: x.clock.t, epoch: epoch, kept: true, rows: map[string][]segment.Float{}}
			for _, row := range rows {
				s.rows[row.Labels.Get("i")] = row.Floats
				s.kept = s.kept && len(row.Exemplars) == 0
			}
			s.name, s.kept = x.put(rows...), s.kept && !late
			all = append(all, s)
		}
		for range 120 {
			x.clock.t = x.clock.t.Add(time.Duration(r.IntN(10_000)) * time.Millisecond)
			x.ask(x.clock.t.UnixMilli() - begun) // somebody must read
			if epoch == 0 && r.IntN(100) == 0 {
				x.rotate()
				epoch++
			}
			now, late := x.clock.t.UnixMilli(), map[int64]bool{}
			byWindow := map[int64][]segment.Row{}
			for i := range r.IntN(4) {
				host := (i*3 + int(seed)) % 7
				var times []int64
				for range 1 + r.IntN(2)*r.IntN(3) {
					at := max(last[host]+1, now-r.Int64N(20_000))
					if r.IntN(400) == 0 {
						at = max(last[host]+1, now-300_000)
						late[at/7_200_000] = late[at/7_200_000] || now-at > 120_000
					}
					last[host] = at
					times = append(times, at)
				}
				series := 16
				if gaps {
					series = 48
				}
				for k := range series {
					if gaps && r.IntN(4) == 0 {
						continue
					}
					floats := map[int64][]segment.Float{}
					for _, at := range times {
						floats[at/7_200_000] = append(floats[at/7_200_000], segment.Float{T: at, V: []float64{1, r.Float64(), math.NaN()}[r.IntN(3)]})
					}
					for w, f := range floats {
						byWindow[w] = append(byWindow[w], segment.Row{Labels: labels.FromStrings("__name__", "m", "i", fmt.Sprint(host, "-", k)), Floats: f})
					}
				}
			}
			if rows := byWindow[window]; len(rows) > 0 && r.IntN(60) == 0 {
				rows[0].Exemplars = []exemplar.Exemplar{{Ts: rows[0].Floats[0].T, Value: 1}}
			}
			store(window, byWindow[window], late[window])
			store(window+1, byWindow[window+1], late[window+1])
			if rows := byWindow[window]; r.IntN(15) == 0 { // once more
				store(window, rows, true)
			}
			parts = append(parts, part(t, r, x, all, epoch, !gaps)...)
			for len(parts) > r.IntN(6) {
				ok := parts[0].check(t, x, epoch)
				parts = parts[1:]
				if ok {
					found++
				}
			}
		}
	}
	require.Greater(t, found, 300)
}

// part opens a part of some segments of a window that follow one another.
func part(t *testing.T, r *rand.Rand, x *storing, all []written, epoch int, sure bool) []opened {
	if len(all) == 0 {
		return nil
	}
	w := all[r.IntN(len(all))].window
	of := slices.DeleteFunc(slices.Clone(all), func(s written) bool { return s.window != w })
	from := max(r.IntN(len(of)), len(of)-1-r.IntN(40))
	to := from + 1 + r.IntN(len(of)-from)
	o := opened{from: &of[from], epoch: of[from].epoch, want: map[string][]segment.Float{}}
	var names []string
	sure = sure && x.clock.t.Sub(of[from].at) < recent.Retention-3*time.Minute
	kept := true
	for _, s := range of[from:to] {
		names = append(names, s.name)
		kept, sure = kept && s.kept, sure && s.epoch == epoch
		for name, f := range s.rows {
			o.want[name] = append(o.want[name], f...)
		}
	}
	p, ok := x.head().Part(names)
	require.False(t, ok && !kept)
	require.True(t, ok || !sure || !kept)
	if !ok {
		return nil
	}
	o.part, o.view = p, x.before
	return []opened{o}
}

// check reports whether the samples were still there.
func (o *opened) check(t *testing.T, x *storing, epoch int) bool {
	got := map[string][]segment.Float{}
	for i, ref := range o.part.Refs {
		ts, vs, err := o.part.Append(i, nil, nil)
		if err != nil {
			require.ErrorIs(t, err, recent.ErrGone)
			require.True(t, epoch != o.epoch || x.clock.t.Sub(o.from.at) > recent.Retention-3*time.Minute)
			return false
		}
		var floats []segment.Float
		for k := range ts {
			floats = append(floats, segment.Float{T: ts[k], V: vs[k]})
		}
		pair := o.view.Pairs(ref)[0]
		got[o.view.Values[pair.Name][pair.Value]] = floats
		require.Len(t, floats, int(o.part.N[i]))
	}
	require.Equal(t, fmt.Sprint(o.want), fmt.Sprint(got))
	return true
}

// TestSmallSegmentsWait: segments of a sample or two, such as results of rules that others wait
// for, wait in the head as others do, and keep no other from it.
func TestSmallSegmentsWait(t *testing.T) {
	x := newStoring(t, 1<<20)
	x.head().Begin()
	var names []string
	for n := range 20 {
		x.clock.t = x.clock.t.Add(5 * time.Second)
		var rows []segment.Row
		for i := range 200 {
			rows = append(rows, segment.Row{Labels: labels.FromStrings("__name__", "m", "i", fmt.Sprint(i)), Floats: []segment.Float{{T: x.clock.t.UnixMilli(), V: float64(n)}}})
		}
		names = append(names, x.put(rows...))
		x.clock.t = x.clock.t.Add(time.Second)
		for _, name := range []string{"a", "b"}[:1+n%2] {
			names = append(names, x.put(segment.Row{Labels: labels.FromStrings("__name__", name), Floats: []segment.Float{{T: x.clock.t.UnixMilli(), V: 1}}}))
		}
	}
	_, ok := x.head().Keeps()
	require.True(t, ok)
	_, ok = x.head().Part(names)
	require.True(t, ok)
}
