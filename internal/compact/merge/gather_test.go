package merge_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/compacttest"
)

// gatherable reports whether rows are float samples without start timestamps.
func gatherable(rs []segment.Row) bool {
	return !slices.ContainsFunc(rs, func(x segment.Row) bool {
		return len(x.Hists)+len(x.Exemplars) > 0 || slices.ContainsFunc(x.Floats, func(f segment.Float) bool { return f.ST != 0 })
	})
}

// TestGatherIsTheModel is TestMergeIsTheModel with segments that are gathered wherever they may be.
func TestGatherIsTheModel(t *testing.T) {
	gathered := 0
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 6))
		m := &maker{r: r, hists: r.IntN(2) == 0, st: r.IntN(4) == 0, series: 1 + r.IntN(30), span: 1 + r.IntN(60)}
		want, got := compacttest.NewAnswer(), compacttest.NewAnswer()
		tombs := m.tombstones()
		var each [][]segment.Row
		var through []int
		total := int64(0)
		for range 1 + r.IntN(12) {
			rs, n := m.rows(), r.IntN(len(tombs)+1)
			if r.IntN(3) > 0 {
				n = len(tombs)
				for i := range rs {
					rs[i].Hists, rs[i].Exemplars = nil, nil
					for j := range rs[i].Floats {
						rs[i].Floats[j].ST = 0
					}
				}
				rs = slices.DeleteFunc(rs, func(x segment.Row) bool { return len(x.Floats) == 0 })
			}
			require.NoError(t, want.Add(rs, tombs[n:]))
			each, through = append(each, rs), append(through, n)
			for _, x := range rs {
				total += int64(len(x.Floats) + len(x.Hists))
			}
		}
		of := []int{1, 1, 2, 4}[r.IntN(4)]
		read := int64(0)
		for slice := range of {
			in := &merge.Into{Table: series.NewTable(seed), Slice: catalog.Slice{Index: slice, Of: of}}
			var srcs []*merge.Source
			var g *merge.Gather
			flush := func() {
				if g != nil {
					srcs, g = append(srcs, g.Source("segments")), nil
				}
			}
			for i := range each {
				id := ulid.ULID{15: byte(through[i])}
				if !gatherable(each[i]) || through[i] < len(tombs) {
					flush()
					srcs = append(srcs, source(t, r, fmt.Sprintf("source %d", i), each[i], in, id))
					continue
				}
				if g == nil {
					g = merge.NewGather(in)
				}
				data, err := compacttest.Encode(each[i])
				require.NoError(t, err)
				_, err = g.Add(fmt.Sprintf("source %d", i), open(t, data), id)
				require.NoError(t, err)
				gathered++
			}
			flush()
			view := in.Table.View()
			sink := &rows{t: t, view: &view}
			stats, err := merge.Merge(t.Context(), in, tombs, srcs, sink, nil)
			require.NoError(t, err)
			require.NoError(t, got.Add(sink.rows, nil))
			read += stats.Read
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, total, read, "seed %d", seed)
	}
	require.Greater(t, gathered, 500)
}

// odd returns values after which a sample may have any form.
func odd(r *rand.Rand, before float64) float64 {
	switch r.IntN(9) {
	case 0:
		return before
	case 1:
		return before + float64(r.IntN(1<<r.IntN(30)))
	case 2:
		return math.Round(before*1000+float64(r.IntN(100_000))) / 1000
	case 3:
		return -float64(r.Int64N(1 << (1 + r.IntN(62))))
	case 4:
		return math.Float64frombits(r.Uint64())
	case 5:
		return math.Float64frombits(math.Float64bits(before) ^ r.Uint64N(256)<<(8*r.IntN(8)))
	case 6:
		return []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.Float64frombits(value.StaleNaN), 5e-324, math.MaxFloat64, 1 << 50, 1<<50 - 1, 1 << 53}[r.IntN(10)]
	default:
		return r.NormFloat64()
	}
}

// TestGatherKeepsBits gathers samples of all kinds in long and short streams, with times that step
// regularly, jump, and go back.
func TestGatherKeepsBits(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 7))
		in := &merge.Into{Table: series.NewTable(seed)}
		g := merge.NewGather(in)
		const n = 7
		var want [n]map[int64]uint64
		var last [n]float64
		var at [n]int64
		for i := range n {
			want[i] = map[int64]uint64{}
		}
		for range 1 + r.IntN(60) {
			var rs []segment.Row
			for i := range n {
				row := segment.Row{Labels: labels.FromStrings("__name__", "m", "i", fmt.Sprint(i))}
				if r.IntN(4) == 0 {
					at[i] += r.Int64N(2*86_400_000) - 86_400_000
				}
				for range r.IntN(1 + 100*(i%2)) {
					if at[i] += 15_000; r.IntN(5) == 0 && i > 1 {
						at[i] += r.Int64N(1000)
					}
					if i > 1 || r.IntN(60) == 0 { // else the value stays
						last[i] = odd(r, last[i])
					}
					want[i][at[i]] = math.Float64bits(last[i])
					row.Floats = append(row.Floats, segment.Float{T: at[i], V: last[i]})
				}
				if len(row.Floats) > 0 {
					rs = append(rs, row)
				}
			}
			data, err := compacttest.Encode(rs)
			require.NoError(t, err)
			_, err = g.Add("segment", open(t, data), ulid.ULID{})
			require.NoError(t, err)
		}
		require.Positive(t, g.Bytes())
		srcs := []*merge.Source{g.Source("segments")}
		view := in.Table.View()
		sink := &rows{t: t, view: &view}
		_, err := merge.Merge(t.Context(), in, nil, srcs, sink, nil)
		require.NoError(t, err)
		for _, row := range sink.rows {
			var i int
			_, err := fmt.Sscan(row.Labels.Get("i"), &i)
			require.NoError(t, err)
			require.Len(t, row.Floats, len(want[i]))
			for _, f := range row.Floats {
				require.Equal(t, want[i][f.T], math.Float64bits(f.V), "seed %d, series %d, time %d", seed, i, f.T)
			}
			want[i] = nil
		}
		for i := range n {
			require.Empty(t, want[i], "series %d is missing", i)
		}
	}
}

// TestGatherRefuses has the segments that a Gather does not take.
func TestGatherRefuses(t *testing.T) {
	ls := labels.FromStrings("__name__", "m")
	for name, row := range map[string]segment.Row{
		"start timestamps": {Labels: ls, Floats: []segment.Float{{T: 5, V: 1, ST: 2}}},
		"histograms":       {Labels: ls, Hists: []segment.Hist{{T: 5, H: tsdbutil.GenerateTestHistogram(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := compacttest.Encode([]segment.Row{row})
			require.NoError(t, err)
			_, err = merge.NewGather(&merge.Into{Table: series.NewTable(1)}).Add("segment", open(t, data), ulid.ULID{})
			require.ErrorIs(t, err, segment.ErrFormat)
		})
	}
}
