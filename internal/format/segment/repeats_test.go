package segment_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// sender makes batches of one table.
type sender struct {
	t     *testing.T
	rng   *rand.Rand
	table *series.Table
	order series.Order
}

func newSender(t *testing.T, seed uint64) *sender {
	return &sender{t: t, rng: rand.New(rand.NewPCG(seed, 8)), table: series.NewTable(seed)}
}

// add adds series with some labels, of which a few have no column, and returns them.
func (s *sender) add(n int) (refs []series.Ref) {
	for i := range n {
		lset := []series.Label{{Name: "Upper", Value: "u"}, {Name: "__name__", Value: fmt.Sprint("m", i%7)}, {Name: "id", Value: fmt.Sprint(s.table.Len())}, {Name: "job", Value: fmt.Sprint(i % 3)}}
		if s.rng.IntN(5) > 0 {
			lset = lset[1:]
		}
		if s.rng.IntN(2) == 0 {
			lset = lset[:len(lset)-1]
		}
		ref, err := s.table.Intern(lset)
		require.NoError(s.t, err)
		refs = append(refs, ref)
	}
	return refs
}

// batch returns samples of series: in every second row 1, in the others up to 3.
func (s *sender) batch(refs []series.Ref, starts, hists, exemplars bool) *segment.Batch {
	view := s.table.View()
	s.order.Extend(&view)
	b := &segment.Batch{View: &view, Order: &s.order, Rows: slices.Clone(refs), TS: []int64{}, V: []float64{}}
	slices.SortFunc(b.Rows, view.Compare)
	for row := range b.Rows {
		at := int64(1_700_000_000_000) + s.rng.Int64N(1000)
		for i := range 1 + s.rng.IntN(3)*(row%2) {
			b.TS, b.V = append(b.TS, at+int64(i)), append(b.V, s.rng.NormFloat64())
		}
		b.End = append(b.End, len(b.TS))
		if hists && row%4 == 0 {
			b.Hists = append(b.Hists, segment.RowHists{Row: row, Samples: []segment.Hist{{T: at, H: tsdbutil.GenerateTestHistogram(at % 100)}}})
		}
		if exemplars && row%5 == 0 {
			b.Exemplars = append(b.Exemplars, segment.RowExemplars{Row: row, Exemplars: []exemplar.Exemplar{{Ts: at, Value: 1, Labels: labels.FromStrings("trace", "x")}}})
		}
	}
	if starts {
		b.ST = make([]int64, len(b.TS))
	}
	return b
}

// TestRepeatsChangeNoByte writes rows again and again, among others, with and without Repeats.
func TestRepeatsChangeNoByte(t *testing.T) {
	for _, bounds := range []int{1 << 10, 30} { // one row group, and sometimes several
		var known segment.Repeats
		plain, err := segment.NewWriterInGroups(bounds, 1<<20)
		require.NoError(t, err)
		w, err := segment.NewWriterInGroups(bounds, 1<<20)
		require.NoError(t, err)
		s := newSender(t, 1)
		var sets [][]series.Ref
		for i := range 400 {
			if i%50 == 0 { // the table grows meanwhile
				sets = append(sets, s.add(1+s.rng.IntN(60)))
			}
			b := s.batch(sets[s.rng.IntN(len(sets))], s.rng.IntN(4) == 0, s.rng.IntN(4) == 0, s.rng.IntN(4) == 0)
			if s.rng.IntN(9) == 0 {
				b.Metadata = []segment.Metadata{{Metric: fmt.Sprint("m", i), Type: "gauge"}}
			}
			want, wantInfo, err := plain.Write(b, nil)
			require.NoError(t, err)
			got, info, err := w.Write(b, &known)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got), "segment %d", i)
			require.Equal(t, wantInfo, info)
			_, err = segment.ReadInfo(bytes.NewReader(got), int64(len(got)))
			require.NoError(t, err)
		}
		require.Positive(t, known.Bytes())
	}
}

// TestRepeatsAreBounded repeats more rows than there is room for. What is not used any more makes
// room for others.
func TestRepeatsAreBounded(t *testing.T) {
	w, err := segment.NewWriter()
	require.NoError(t, err)
	var known segment.Repeats
	s := newSender(t, 2)
	all := s.add(20_000)
	repeat := func(refs []series.Ref) {
		for range 2 {
			_, _, err := w.Write(s.batch(refs, false, false, false), &known)
			require.NoError(t, err)
		}
	}
	limit := segment.RepeatsLimit(len(all))
	for i := range 30 {
		repeat(all[i : 18_000+i])
		require.LessOrEqual(t, known.Bytes(), limit)
	}
	full := known.Bytes()
	require.Greater(t, full, limit/2)
	repeat(all[:19_000])
	require.Equal(t, full, known.Bytes(), "all that is there was used lately")
	for range 300 {
		repeat(all[:10])
	}
	repeat(all[:19_000])
	require.NotEqual(t, full, known.Bytes())
	require.LessOrEqual(t, known.Bytes(), limit)
}

// TestRowsOnceAreNotKept: senders that never write the same series together take no memory.
func TestRowsOnceAreNotKept(t *testing.T) {
	w, err := segment.NewWriter()
	require.NoError(t, err)
	var known segment.Repeats
	s := newSender(t, 3)
	for range 100 {
		_, _, err := w.Write(s.batch(s.add(5), false, false, false), &known)
		require.NoError(t, err)
	}
	require.Zero(t, known.Bytes())
}
