package rollup_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
)

// fieldsOf are the fields of a row as bits.
func fieldsOf(r *rollup.Row, of []rollup.Field) (out []uint64) {
	out = append(out, uint64(r.Bucket), uint64(r.Count))
	if r.Count == 0 {
		return out
	}
	all := []uint64{
		rollup.FieldTotal: math.Float64bits(r.Total()), rollup.FieldMin: math.Float64bits(r.Min), rollup.FieldMax: math.Float64bits(r.Max),
		rollup.FieldFirst: math.Float64bits(r.First), rollup.FieldLast: math.Float64bits(r.Last), rollup.FieldFirstT: uint64(r.FirstT), rollup.FieldLastT: uint64(r.LastT),
		rollup.FieldIncrease: math.Float64bits(r.Increase()), rollup.FieldChanges: uint64(r.Changes), rollup.FieldResets: uint64(r.Resets), rollup.FieldNaNs: uint64(r.NaNs),
	}
	for _, f := range of {
		out = append(out, all[f])
	}
	return out
}

var allFields = []rollup.Field{
	rollup.FieldTotal, rollup.FieldMin, rollup.FieldMax, rollup.FieldFirst, rollup.FieldLast, rollup.FieldFirstT, rollup.FieldLastT,
	rollup.FieldIncrease, rollup.FieldChanges, rollup.FieldResets, rollup.FieldNaNs,
}

// TestReadRows: each field alone, and all of them, are read as they were written.
func TestReadRows(t *testing.T) {
	files := writtenSeries(t, 24, 3000)
	for _, step := range rollup.Steps() {
		want, in := files.read(t, step.Name), bytes.NewReader(files[step.Name].Bytes())
		c, err := rollup.OpenColumns(in, in.Size(), int64(len(want)), func(uint64, int) error { return nil })
		require.NoError(t, err)
		asked := [][]rollup.Field{nil, allFields}
		for _, f := range allFields {
			asked = append(asked, []rollup.Field{f})
		}
		var rows []rollup.Row
		for _, fields := range asked {
			at := 0
			for g := range c.Groups() {
				require.NotEmpty(t, c.FieldSpans(g, fields))
				rows, err = c.ReadRows(in, g, fields, rows)
				require.NoError(t, err)
				for i := range rows {
					require.Equal(t, fieldsOf(&want[at].Row, fields), fieldsOf(&rows[i], fields))
					at++
				}
			}
			require.Len(t, want, at)
		}
	}
}

// TestJoin: a row and the row of one later sample of its bucket, each with the fields alone that
// are asked for, make the row of all samples.
func TestJoin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	step := rollup.Steps()[0]
	odd := []float64{stale, math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e300, -1e300}
	rowOf := func(ts []int64, v []float64) (out rollup.Row) {
		step.Rows(ts, v, func(r *rollup.Row) { out = *r })
		return out
	}
	random := func() (n int, ts []int64, v []float64) {
		n = 1 + rng.IntN(6)
		ts, v = make([]int64, n+1), make([]float64, n+1)
		for i := range v {
			ts[i], v[i] = int64(i+1), rng.Float64()-0.5
			if rng.IntN(3) == 0 {
				v[i] = odd[rng.IntN(len(odd))]
			}
		}
		return n, ts, v
	}
	for range 10_000 {
		n, ts, v := random()
		got, later, want := rowOf(ts[:n], v[:n]), rowOf(ts[n:], v[n:]), rowOf(ts, v)
		require.True(t, got.Join(&later))
		require.Equal(t, fieldsOf(&want, allFields), fieldsOf(&got, allFields), "%v", v)
	}
	for range 50 { // from files, with the columns of one field
		n, ts, v := random()
		files := memFiles{}
		w, err := rollup.NewFullWriter(files)
		require.NoError(t, err)
		require.NoError(t, w.Append("m", 1, ts[:n], v[:n], nil))
		require.NoError(t, w.Append("m", 2, ts[n:], v[n:], nil))
		_, err = w.Close()
		require.NoError(t, err)
		in := bytes.NewReader(files[step.Name].Bytes())
		c, err := rollup.OpenColumns(in, in.Size(), 2, func(uint64, int) error { return nil })
		require.NoError(t, err)
		for _, f := range allFields {
			rows, err := c.ReadRows(in, 0, []rollup.Field{f}, nil)
			require.NoError(t, err)
			require.True(t, rows[0].Join(&rows[1]))
			want := rowOf(ts, v)
			require.Equal(t, fieldsOf(&want, []rollup.Field{f}), fieldsOf(&rows[0], []rollup.Field{f}), "%d %v", f, v)
		}
	}
	several, one := rowOf([]int64{1, 2}, []float64{1, 2}), rowOf([]int64{1}, []float64{1})
	require.False(t, one.Join(&several))
	one.Bucket++
	require.False(t, several.Join(&one))
}
