package merge_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/merge"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/livetest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// rows is a sink that keeps what it gets.
type rows struct {
	t    *testing.T
	view *series.View
	refs []series.Ref
	rows []segment.Row
}

func (s *rows) Append(ref series.Ref, x *block.Samples) error {
	if n := len(s.refs); n > 0 {
		require.Negative(s.t, series.ComparePriority(s.view, s.refs[n-1], ref), "series are not in block order")
	}
	s.refs = append(s.refs, ref)
	r := segment.Row{Labels: labelsOf(s.view, ref), Hists: slices.Clone(x.Hists), Exemplars: slices.Clone(x.Exemplars)}
	require.Len(s.t, x.V, len(x.TS))
	for i, t := range x.TS {
		f := segment.Float{T: t, V: x.V[i]}
		if x.ST != nil {
			require.Len(s.t, x.ST, len(x.TS))
			f.ST = x.ST[i]
		}
		r.Floats = append(r.Floats, f)
	}
	ascending(s.t, r.Floats, func(f segment.Float) int64 { return f.T })
	ascending(s.t, r.Hists, func(h segment.Hist) int64 { return h.T })
	require.NotZero(s.t, len(r.Floats)+len(r.Hists)+len(r.Exemplars), "an empty series")
	s.rows = append(s.rows, r)
	return nil
}

// open decodes the footer of a segment.
func open(t *testing.T, data []byte) *segment.File {
	f, err := segment.Open(data)
	require.NoError(t, err)
	return &f
}

func ascending[E any](t *testing.T, s []E, at func(E) int64) {
	for i := 1; i < len(s); i++ {
		require.Less(t, at(s[i-1]), at(s[i]), "timestamps do not ascend")
	}
}

func labelsOf(v *series.View, r series.Ref) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels()).Set("__name__", v.Metrics[v.Metric(r)])
	for _, p := range v.Pairs(r) {
		b.Set(v.Names[p.Name], v.Values[p.Name][p.Value])
	}
	return b.Labels()
}

// maker makes random rows.
type maker struct {
	r            *rand.Rand
	hists, st    bool
	series, span int
}

func (m *maker) labels(i int) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels()).Set("__name__", fmt.Sprintf("m%d", i%3)).Set("i", fmt.Sprint(i))
	for _, n := range []string{"job", "instance", "Zone", "a_b", "cluster"} {
		if (i/3)%len(n) > 1 {
			b.Set(n, fmt.Sprintf("%s%d", n, i%2))
		}
	}
	return b.Labels()
}

func (m *maker) times() []int64 {
	seen := map[int64]bool{}
	for range m.r.IntN(8) {
		seen[int64(m.r.IntN(m.span))] = true
	}
	var out []int64
	for t := range int64(m.span) {
		if seen[t] {
			out = append(out, t)
		}
	}
	return out
}

func (m *maker) row(i int) segment.Row {
	row := segment.Row{Labels: m.labels(i)}
	for _, t := range m.times() {
		f := segment.Float{T: t, V: float64(m.r.IntN(100)) / 10}
		if m.r.IntN(10) == 0 {
			f.V = math.Float64frombits(value.StaleNaN)
		}
		if m.st && m.r.IntN(2) == 0 {
			f.ST = t - 5
		}
		row.Floats = append(row.Floats, f)
	}
	if m.hists && i%4 == 0 {
		for _, t := range m.times() {
			h := segment.Hist{T: t, H: tsdbutil.GenerateTestHistogram(m.r.Int64N(50))}
			if m.r.IntN(3) == 0 {
				h = segment.Hist{T: t, FH: &histogram.FloatHistogram{Count: 3, Sum: math.Float64frombits(value.StaleNaN)}}
			}
			row.Hists = append(row.Hists, h)
		}
	}
	if i%5 == 0 {
		for range m.r.IntN(4) {
			e := exemplar.Exemplar{Ts: int64(m.r.IntN(m.span)), Value: float64(m.r.IntN(3)), HasTs: true, Labels: labels.FromStrings("trace", fmt.Sprint(m.r.IntN(2)))}
			row.Exemplars = append(row.Exemplars, e)
		}
		slices.SortFunc(row.Exemplars, func(a, b exemplar.Exemplar) int { return int(a.Ts - b.Ts) })
	}
	return row
}

func (m *maker) rows() (out []segment.Row) {
	for i := range m.series {
		if m.r.IntN(3) == 0 {
			continue
		}
		if row := m.row(i); len(row.Floats)+len(row.Hists)+len(row.Exemplars) > 0 {
			out = append(out, row)
		}
	}
	return out
}

// tombstones are random; the identifier of the n-th is n+1, so that those from the n-th on apply to
// an object whose DeletesThrough is n.
func (m *maker) tombstones() (out []catalog.Tombstone) {
	for n := range m.r.IntN(3) {
		t := catalog.Tombstone{ID: ulid.ULID{15: byte(n + 1)}, Matchers: []catalog.Matcher{{Type: "=", Name: "__name__", Value: "m1"}}}
		if m.r.IntN(2) == 0 {
			t.Matchers = []catalog.Matcher{{Type: "=~", Name: "i", Value: "1.*|"}, {Type: "!=", Name: "job", Value: "job0"}}
		}
		t.MinT = int64(m.r.IntN(m.span))
		t.MaxT = t.MinT + int64(m.r.IntN(m.span))
		out = append(out, t)
	}
	return out
}

// source makes a source of the rows: a segment, or a block.
func source(t *testing.T, r *rand.Rand, name string, rs []segment.Row, in *merge.Into, through ulid.ULID) *merge.Source {
	t.Helper()
	if r.IntN(2) == 0 || len(rs) == 0 {
		data, err := compacttest.Encode(rs)
		require.NoError(t, err)
		s, _, err := merge.Segment(name, open(t, data), in, through)
		require.NoError(t, err)
		return s
	}
	st := slices.ContainsFunc(rs, func(x segment.Row) bool {
		return slices.ContainsFunc(x.Floats, func(f segment.Float) bool { return f.ST != 0 })
	})
	files, err := compacttest.Block(inBlockOrder(rs), block.Options{Level: key.Part, HasST: st, RowGroupRows: 1 + r.IntN(40)})
	require.NoError(t, err)
	b, err := block.Open(files)
	require.NoError(t, err)
	s, _, err := merge.Block(name, b, in, through)
	require.NoError(t, err)
	return s
}

func inBlockOrder(rs []segment.Row) []segment.Row {
	table := series.NewTable(9)
	refs := map[string]series.Ref{}
	for _, x := range rs {
		var ls []series.Label
		x.Labels.Range(func(l labels.Label) { ls = append(ls, series.Label{Name: l.Name, Value: l.Value}) })
		refs[x.Labels.String()], _ = table.Intern(ls)
	}
	v := table.View()
	return slices.SortedFunc(slices.Values(rs), func(a, b segment.Row) int {
		return series.ComparePriority(&v, refs[a.Labels.String()], refs[b.Labels.String()])
	})
}

// TestMergeIsTheModel merges random sources, with and without slices, and holds the result against
// the rule: object by object in ascending rank, what is not deleted, the later one counting.
func TestMergeIsTheModel(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 5))
		m := &maker{r: r, hists: r.IntN(2) == 0, st: r.IntN(2) == 0, series: 1 + r.IntN(30), span: 1 + r.IntN(60)}
		want, got := compacttest.NewAnswer(), compacttest.NewAnswer()
		tombs := m.tombstones()
		var each [][]segment.Row
		var through []ulid.ULID
		total := int64(0)
		for range 1 + r.IntN(9) {
			rs, n := m.rows(), r.IntN(len(tombs)+1)
			require.NoError(t, want.Add(rs, tombs[n:]))
			each, through = append(each, rs), append(through, ulid.ULID{15: byte(n)})
			for _, x := range rs {
				total += int64(len(x.Floats) + len(x.Hists))
			}
		}
		of := []int{1, 1, 2, 4}[r.IntN(4)]
		read, written := int64(0), int64(0)
		for slice := range of {
			in := &merge.Into{Table: series.NewTable(seed), Slice: catalog.Slice{Index: slice, Of: of}}
			var srcs []*merge.Source
			for i := range each {
				srcs = append(srcs, source(t, r, fmt.Sprintf("source %d", i), each[i], in, through[i]))
			}
			view := in.Table.View()
			sink := &rows{t: t, view: &view}
			stats, err := merge.Merge(t.Context(), in, tombs, srcs, sink, nil)
			require.NoError(t, err)
			require.Equal(t, int64(len(sink.rows)), stats.Series)
			require.NoError(t, got.Add(sink.rows, nil))
			for _, x := range sink.rows {
				require.True(t, in.Slice.Contains(segmenttest.ID(x.Labels)))
			}
			read, written = read+stats.Read, written+stats.Samples
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, total, read, "seed %d", seed)
		require.Equal(t, int64(got.Count()), written, "seed %d", seed)
	}
}

// TestMergeOfEqualTimes spells out who wins.
func TestMergeOfEqualTimes(t *testing.T) {
	ls := labels.FromStrings("__name__", "m")
	float := func(ts int64, v float64) segment.Row {
		return segment.Row{Labels: ls, Floats: []segment.Float{{T: ts, V: v}}}
	}
	hist := func(ts, n int64) segment.Row {
		return segment.Row{Labels: ls, Hists: []segment.Hist{{T: ts, H: tsdbutil.GenerateTestHistogram(n)}}}
	}
	both := float(5, 1)
	both.Hists = hist(5, 1).Hists
	for _, tc := range []struct {
		name        string
		sources     []segment.Row // ascending rank
		floats      []segment.Float
		hists       int
		firstOfHist int64
	}{
		{"floats", []segment.Row{float(5, 1), float(5, 2)}, []segment.Float{{T: 5, V: 2}}, 0, 0},
		{"a later float", []segment.Row{hist(5, 1), float(5, 2)}, []segment.Float{{T: 5, V: 2}}, 0, 0},
		{"a later histogram", []segment.Row{float(5, 1), hist(5, 2)}, nil, 1, 2},
		{"both in one", []segment.Row{both}, nil, 1, 1},
		{"both, then a float", []segment.Row{both, float(5, 3)}, []segment.Float{{T: 5, V: 3}}, 0, 0},
		{"out of order", []segment.Row{float(9, 1), float(3, 2), float(5, 3)}, []segment.Float{{T: 3, V: 2}, {T: 5, V: 3}, {T: 9, V: 1}}, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := &merge.Into{Table: series.NewTable(1)}
			var srcs []*merge.Source
			for _, x := range tc.sources {
				data, err := compacttest.Encode([]segment.Row{x})
				require.NoError(t, err)
				s, _, err := merge.Segment("s", open(t, data), in, ulid.ULID{})
				require.NoError(t, err)
				srcs = append(srcs, s)
			}
			view := in.Table.View()
			sink := &rows{t: t, view: &view}
			_, err := merge.Merge(t.Context(), in, nil, srcs, sink, nil)
			require.NoError(t, err)
			require.Len(t, sink.rows, 1)
			require.Equal(t, tc.floats, sink.rows[0].Floats)
			require.Len(t, sink.rows[0].Hists, tc.hists)
			if tc.hists > 0 {
				require.Equal(t, tsdbutil.GenerateTestHistogram(tc.firstOfHist).Count, sink.rows[0].Hists[0].H.Count)
			}
		})
	}
}

// TestMergeAnswersTheCases merges the objects of every case of package live.
func TestMergeAnswersTheCases(t *testing.T) {
	ls := labels.FromStrings("__name__", "m")
	for _, c := range livetest.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			in := &merge.Into{Table: series.NewTable(1)}
			var srcs []*merge.Source
			var tombs []catalog.Tombstone
			for i, s := range c.Steps {
				if s.Delete != nil {
					tombs = append(tombs, catalog.Tombstone{
						ID: ulid.ULID{15: byte(i)}, MinT: s.Delete[0], MaxT: s.Delete[1], Matchers: []catalog.Matcher{{Type: "=", Name: "__name__", Value: "m"}},
					})
					continue
				}
				row := segment.Row{Labels: ls}
				for _, at := range s.Floats {
					v := float64(i)
					if slices.Contains(s.Stale, at) {
						v = math.Float64frombits(value.StaleNaN)
					}
					row.Floats = append(row.Floats, segment.Float{T: at, V: v, ST: int64(i)})
				}
				for _, at := range s.Hists {
					row.Hists = append(row.Hists, segment.Hist{T: at, ST: int64(i), H: tsdbutil.GenerateTestHistogram(1)})
				}
				data, err := compacttest.Encode([]segment.Row{row})
				require.NoError(t, err)
				src, _, err := merge.Segment("s", open(t, data), in, ulid.ULID{15: byte(i)})
				require.NoError(t, err)
				srcs = append(srcs, src)
			}
			view := in.Table.View()
			sink := &rows{t: t, view: &view}
			_, err := merge.Merge(t.Context(), in, tombs, srcs, sink, nil)
			require.NoError(t, err)
			got := []livetest.Want{}
			for _, row := range sink.rows {
				for _, f := range row.Floats {
					kind := "float"
					if value.IsStaleNaN(f.V) {
						kind = "stale"
					} else {
						require.Equal(t, float64(f.ST), f.V)
					}
					got = append(got, livetest.Want{T: f.T, Step: int(f.ST), Kind: kind})
				}
				for _, h := range row.Hists {
					got = append(got, livetest.Want{T: h.T, Step: int(h.ST), Kind: "hist"})
				}
			}
			slices.SortFunc(got, func(a, b livetest.Want) int { return cmp.Compare(a.T, b.T) })
			require.Equal(t, c.Want, got)
		})
	}
}

func TestDescriptions(t *testing.T) {
	d := merge.Descriptions{}
	d.Add([]segment.Metadata{{Metric: "b", Help: "old"}, {Metric: "c"}})
	d.Add(nil)
	d.Add([]segment.Metadata{{Metric: "a"}, {Metric: "b", Help: "new"}})
	require.Equal(t, []segment.Metadata{{Metric: "a"}, {Metric: "b", Help: "new"}, {Metric: "c"}}, d.Sorted())
}
