package index_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

const seed = 42

// randomRows generates rows with labels that have columns and labels in the MAP, with many or few
// distinct values.
func randomRows(rng *rand.Rand, n int) []segment.Row {
	names := []string{"job", "instance", "zone", "Zone", "dotted.name", "rare"}
	var out []segment.Row
	seen := map[string]bool{}
	for len(out) < n {
		b := labels.NewBuilder(labels.EmptyLabels())
		if rng.IntN(20) > 0 {
			b.Set(model.MetricNameLabel, fmt.Sprintf("m%d", rng.IntN(1+n/10)))
		}
		for i, name := range names {
			if rng.IntN(i+1) == 0 {
				b.Set(name, fmt.Sprint([]int{rng.IntN(3), rng.IntN(1 + n), rng.IntN(400)}[i%3]))
			}
		}
		r := segment.Row{Labels: b.Labels()}
		if r.Labels.IsEmpty() || seen[r.Labels.String()] {
			continue
		}
		seen[r.Labels.String()] = true
		from := rng.Int64N(1000)
		for i := range 1 + rng.IntN(5) {
			r.Floats = append(r.Floats, segment.Float{T: from + int64(i), V: 1})
		}
		if rng.IntN(5) == 0 {
			r.Hists = append(r.Hists, segment.Hist{T: from + 100, H: tsdbutil.GenerateTestHistogram(1)})
		}
		if rng.IntN(5) == 0 {
			r.Exemplars = append(r.Exemplars, exemplar.Exemplar{Ts: max(0, from-100), HasTs: true, Value: 1})
		}
		if rng.IntN(5) == 0 && len(r.Exemplars)+len(r.Hists) > 0 {
			r.Floats = nil
		}
		out = append(out, r)
	}
	return out
}

// times returns the first and last time of a row's samples, histograms and exemplars.
func times(r *segment.Row) (mint, maxt int64) {
	var ts []int64
	for _, f := range r.Floats {
		ts = append(ts, f.T)
	}
	for _, h := range r.Hists {
		ts = append(ts, h.T)
	}
	for _, e := range r.Exemplars {
		ts = append(ts, e.Ts)
	}
	return slices.Min(ts), slices.Max(ts)
}

// asSegment writes rows as a segment and loads it.
func asSegment(t *testing.T, rows []segment.Row) (*index.Table, someOf) {
	b, _, err := segmenttest.Encode(rows, nil)
	require.NoError(t, err)
	out, err := index.LoadSegment(bytes.NewReader(b), int64(len(b)), seed, nil)
	require.NoError(t, err)
	return out, func(ctx context.Context, s index.Some) (*index.Table, error) {
		return s.Segment(ctx, bytes.NewReader(b), int64(len(b)))
	}
}

// memFiles implements block.Files.
type memFiles map[string]*bytes.Buffer

type memFile struct{ *bytes.Buffer }

func (memFile) Close() error { return nil }

func (m memFiles) Create(name string) (io.WriteCloser, error) {
	m[name] = &bytes.Buffer{}
	return memFile{m[name]}, nil
}

// writeBlock writes rows as a block.
func writeBlock(t *testing.T, rows []segment.Row) (memFiles, block.Meta) {
	table := series.NewTable(1)
	byRef := map[series.Ref]*segment.Row{}
	var refs []series.Ref
	for i := range rows {
		var lset []series.Label
		rows[i].Labels.Range(func(l labels.Label) { lset = append(lset, series.Label{Name: l.Name, Value: l.Value}) })
		ref, err := table.Intern(lset)
		require.NoError(t, err)
		byRef[ref], refs = &rows[i], append(refs, ref)
	}
	view := table.View()
	slices.SortFunc(refs, func(a, b series.Ref) int { return series.ComparePriority(&view, a, b) })
	files := memFiles{}
	w, err := block.NewWriter(files, &view, block.Options{Level: key.L2h, RowGroupRows: 100})
	require.NoError(t, err)
	for _, ref := range refs {
		r := byRef[ref]
		s := block.Samples{Hists: r.Hists, Exemplars: r.Exemplars}
		for _, f := range r.Floats {
			s.TS, s.V = append(s.TS, f.T), append(s.V, f.V)
		}
		require.NoError(t, w.Append(ref, &s))
	}
	m, err := w.Close(block.Header{})
	require.NoError(t, err)
	return files, m
}

func asBlock(t *testing.T, rows []segment.Row) (*index.Table, someOf) {
	files, m := writeBlock(t, rows)
	b := files[block.SeriesFile].Bytes()
	out, err := index.LoadBlock(bytes.NewReader(b), int64(len(b)), &m, seed)
	require.NoError(t, err)
	return out, func(ctx context.Context, s index.Some) (*index.Table, error) {
		return s.Block(ctx, bytes.NewReader(b), int64(len(b)), &m)
	}
}

// someOf reads some rows of an object.
type someOf func(context.Context, index.Some) (*index.Table, error)

var objects = []struct {
	name string
	load func(*testing.T, []segment.Row) (*index.Table, someOf)
}{{"segment", asSegment}, {"block", asBlock}}

// TestTable: rows have the labels, places and times that were written, in segments and blocks, and
// equal label sets have equal keys.
func TestTable(t *testing.T) {
	for _, o := range objects {
		t.Run(o.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 40, 1500} {
				rng := rand.New(rand.NewPCG(uint64(n), 1))
				rows := randomRows(rng, n)
				byLabels := map[string]*segment.Row{}
				for i := range rows {
					byLabels[rows[i].Labels.String()] = &rows[i]
				}
				table, _ := o.load(t, rows)
				other, _ := asSegment(t, rows)
				require.Equal(t, n, table.Rows())
				require.Positive(t, table.Bytes())
				keys := map[string]index.Key{}
				reader := other.NewReader()
				for row := range n {
					keys[reader.Labels(row).String()] = other.Key(row)
				}
				var floats, hists, exemplars int64
				reader = table.NewReader()
				order := rng.Perm(n)
				for k := range 2 * n {
					row := k - n
					if k < n {
						row = order[k] // labels in any order, and then ascending
					}
					lset := reader.Labels(row)
					r := byLabels[lset.String()]
					require.NotNil(t, r, "%s", lset)
					require.True(t, labels.Equal(r.Labels, lset))
					if k < n {
						continue
					}
					require.Equal(t, keys[lset.String()], table.Key(row))
					id, stored := table.ID(row)
					require.True(t, stored)
					require.Equal(t, segmenttest.ID(lset), id)
					first, count := table.Floats(row)
					require.Equal(t, [2]int64{floats, int64(len(r.Floats))}, [2]int64{first, count})
					floats += count
					first, count = table.Hists(row)
					require.Equal(t, [2]int64{hists, int64(len(r.Hists))}, [2]int64{first, count})
					hists += count
					first, count = table.Exemplars(row)
					require.Equal(t, [2]int64{exemplars, int64(len(r.Exemplars))}, [2]int64{first, count})
					exemplars += count
					mint, maxt := times(r)
					from, upto := table.Times(row)
					require.Equal(t, [2]int64{mint, maxt}, [2]int64{from, upto})
				}
				require.Equal(t, []int64{floats, hists, exemplars}, []int64{table.TotalFloats(), table.TotalHists(), table.TotalExemplars()})
			}
		})
	}
}

// TestSelect compares with matchers that are applied to every row.
func TestSelect(t *testing.T) {
	patterns := []string{"", ".*", ".+", "1", "1.*", "(1|2|30)", ".*1", "m1.*", "m(1|2|3)", "m1", "m23", "[^1]*", "(?i)M1", "1|", "nothing"}
	for _, o := range objects {
		t.Run(o.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, 7))
			table, _ := o.load(t, randomRows(rng, 1200))
			lsets := make([]labels.Labels, table.Rows())
			for row, r := 0, table.NewReader(); row < len(lsets); row++ {
				lsets[row] = r.Labels(row)
			}
			names := append([]string{"absent"}, table.Names()...)
			for range 1500 {
				ms := make([]*labels.Matcher, rng.IntN(4))
				for i := range ms {
					ms[i] = labels.MustNewMatcher(labels.MatchType(rng.IntN(4)), names[rng.IntN(len(names))], patterns[rng.IntN(len(patterns))])
				}
				got, err := table.Select(t.Context(), ms)
				require.NoError(t, err)
				values, used := map[string]bool{}, map[string]bool{}
				of := names[rng.IntN(len(names))]
				var want []index.Range
				for row, lset := range lsets {
					if slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(lset.Get(m.Name)) }) {
						continue
					}
					if n := len(want); n > 0 && int(want[n-1].To) == row {
						want[n-1].To++
					} else {
						want = append(want, index.Range{From: uint32(row), To: uint32(row) + 1})
					}
					lset.Range(func(l labels.Label) { used[l.Name] = true })
					if v := lset.Get(of); v != "" {
						values[v] = true
					}
				}
				require.Equal(t, want, got, "%s", ms)
				gotValues, gotUsed := table.Values(of, got), table.Used(got)
				require.True(t, slices.IsSorted(gotValues) && slices.IsSorted(gotUsed))
				require.ElementsMatch(t, keysOf(values), gotValues, "values of %s of %s", of, ms)
				require.ElementsMatch(t, keysOf(used), gotUsed, "%s", ms)
			}
		})
	}
}

func keysOf(m map[string]bool) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// everything is a selector of all series, whatever their names.
var everything = [][]*labels.Matcher{{labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".*")}}

// TestCorrupt: any wrong byte and any truncation leads to other rows or an error of the format,
// never to a panic.
func TestCorrupt(t *testing.T) {
	rows := randomRows(rand.New(rand.NewPCG(3, 3)), 60)
	seg, _, err := segmenttest.Encode(rows, nil)
	require.NoError(t, err)
	files, m := writeBlock(t, rows)
	table := files[block.SeriesFile].Bytes()
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 5))
		b := slices.Clone(table)
		if seed%2 == 0 {
			b = slices.Clone(seg)
		}
		for range 1 + rng.IntN(3) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		if rng.IntN(4) == 0 {
			b = b[:rng.IntN(len(b))]
		}
		some := index.Some{Seed: 1, Sets: everything, Most: len(rows)}
		if seed%2 == 0 {
			_, err := index.LoadSegment(bytes.NewReader(b), int64(len(b)), 1, nil)
			_, err2 := some.Segment(t.Context(), bytes.NewReader(b), int64(len(b)))
			for _, err := range []error{err, err2} {
				require.True(t, err == nil || errors.Is(err, segment.ErrFormat), err)
			}
		} else {
			_, err := index.LoadBlock(bytes.NewReader(b), int64(len(b)), &m, 1)
			_, err2 := some.Block(t.Context(), bytes.NewReader(b), int64(len(b)), &m)
			for _, err := range []error{err, err2} {
				require.True(t, err == nil || errors.Is(err, block.ErrFormat), err)
			}
		}
	}
}

func TestRanges(t *testing.T) {
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var in [2][30]bool
		var lists [2][]index.Range
		for i := range in {
			for row := range in[i] {
				in[i][row] = rng.IntN(3) > 0
			}
			lists[i] = index.Keep([]index.Range{{From: 0, To: 30}}, func(row int) bool { return in[i][row] })
		}
		for name, tc := range map[string]struct {
			got []index.Range
			is  func(row int) bool
		}{
			"without": {index.Without(lists[0], lists[1]), func(row int) bool { return in[0][row] && !in[1][row] }},
			"union":   {index.Union(lists[0], lists[1]), func(row int) bool { return in[0][row] || in[1][row] }},
		} {
			var got [30]bool
			last := -1
			for _, r := range tc.got {
				require.Less(t, last, int(r.From), name)
				require.Less(t, r.From, r.To, name)
				for row := r.From; row < r.To; row++ {
					got[row] = true
				}
				last = int(r.To) - 1
			}
			for row := range got {
				require.Equal(t, tc.is(row), got[row], "%s, seed %d, row %d", name, seed, row)
			}
		}
	}
}
