package rollup_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/util/kahansum"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/rollup"
)

// naive computes a bucket's row figure by figure from the samples in (bucket, bucket+step].
func naive(s samples, bucket, step int64) rollup.Row {
	r := rollup.Row{Bucket: bucket}
	var ts []int64
	var vs []float64
	for i, t := range s.ts {
		switch {
		case t <= bucket || t > bucket+step:
		case value.IsStaleNaN(s.v[i]):
			r.Stale++
			r.StaleT = t
		default:
			ts, vs = append(ts, t), append(vs, s.v[i])
		}
	}
	if r.Count = int64(len(vs)); r.Count == 0 {
		return r
	}
	r.FirstT, r.LastT = ts[0], ts[len(ts)-1]
	r.First, r.Last = vs[0], vs[len(vs)-1]
	r.Min, r.Max = extreme(vs, func(a, b float64) bool { return a < b }), extreme(vs, func(a, b float64) bool { return a > b })
	var dropped []float64
	for i, v := range vs {
		r.Sum, r.SumC = kahansum.Inc(v, r.Sum, r.SumC)
		if math.IsNaN(v) {
			r.NaNs++
		}
		if v != math.Trunc(v) {
			r.Flags |= rollup.FlagFraction
		}
		if i == 0 {
			continue
		}
		if vs[i-1] > v {
			dropped = append(dropped, vs[i-1])
		}
		if vs[i-1] != v && !(math.IsNaN(vs[i-1]) && math.IsNaN(v)) {
			r.Changes++
		}
	}
	r.Resets = int64(len(dropped))
	for i, v := range dropped {
		if i == 0 {
			r.ResetSum = v
		} else {
			r.ResetSum += v
		}
	}
	return r
}

// extreme returns the earliest best number, or the last NaN if there is no number.
func extreme(vs []float64, better func(a, b float64) bool) float64 {
	numbers := slices.DeleteFunc(slices.Clone(vs), math.IsNaN)
	if len(numbers) == 0 {
		return vs[len(vs)-1]
	}
	best := numbers[0]
	for _, v := range numbers {
		if better(v, best) {
			best = v
		}
	}
	return best
}

// bits makes rows comparable bit for bit. The sum of values with a NaN is some NaN.
func bits(r rollup.Row) string {
	if math.IsNaN(r.Sum) {
		r.Sum, r.SumC = math.NaN(), math.NaN()
	}
	s := fmt.Sprint(r.Bucket, r.Flags, r.Count, r.FirstT, r.LastT, r.NaNs, r.Changes, r.Resets, r.Stale, r.StaleT)
	for _, v := range []float64{r.First, r.Last, r.Min, r.Max, r.Sum, r.SumC, r.ResetSum} {
		s += fmt.Sprintf(" %016x(%g)", math.Float64bits(v), v)
	}
	return s
}

func TestRowsAreWhatTheSamplesSay(t *testing.T) {
	for name, next := range values {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(7, uint64(len(name))))
			files := memFiles{}
			w, err := rollup.NewFullWriter(files)
			require.NoError(t, err)
			var all []samples
			for id := range 20 {
				s := randomSeries(rng, 1_772_496_000_000, 1+rng.IntN(900), next)
				all = append(all, s)
				require.NoError(t, w.Append(fmt.Sprint("m", id/10), uint64(id), s.ts, s.v, nil))
			}
			written, err := w.Close()
			require.NoError(t, err)
			require.Len(t, written, len(rollup.Steps()))
			for i, step := range rollup.Steps() {
				rows := files.read(t, step.Name)
				require.Equal(t, block.File{Name: step.Name, Bytes: int64(files[step.Name].Len()), Rows: int64(len(rows))}, written[i])
				for id, s := range all {
					last := int64(math.MinInt64)
					for _, ts := range s.ts {
						bucket := step.BucketOf(ts)
						if bucket == last {
							continue
						}
						require.True(t, bucket < ts && ts <= bucket+step.Millis && bucket%step.Millis == 0)
						last = bucket
						require.NotEmpty(t, rows)
						require.Equal(t, fmt.Sprint("m", id/10), rows[0].Metric)
						require.Equal(t, uint64(id), rows[0].SeriesID)
						require.Equal(t, bits(naive(s, bucket, step.Millis)), bits(rows[0].Row), "%s, series %d", step.Name, id)
						rows = rows[1:]
					}
				}
				require.Empty(t, rows)
			}
		})
	}
}

func TestBucketOf(t *testing.T) {
	step := rollup.Steps()[0]
	const m = 300_000
	for ts, want := range map[int64]int64{1: 0, m: 0, m + 1: m, 2 * m: m, 0: -m, -1: -m, -m: -2 * m, -m + 1: -m} {
		require.Equal(t, want, step.BucketOf(ts), "%d", ts)
	}
}

func TestStartTimestampsAreFlagged(t *testing.T) {
	files := memFiles{}
	w, err := rollup.NewFullWriter(files)
	require.NoError(t, err)
	ts, v := []int64{1, 300_000, 300_001, 600_001}, []float64{1, 2, stale, 0.5}
	require.NoError(t, w.Append("m", 1, ts, v, []int64{0, 0, 7, 0}))
	require.NoError(t, w.Append("m", 2, ts, v, nil))
	_, err = w.Close()
	require.NoError(t, err)
	var flags []int64
	for _, r := range files.read(t, "rollup-5m.parquet") {
		flags = append(flags, r.Flags)
	}
	require.Equal(t, []int64{0, rollup.FlagStart, rollup.FlagFraction, 0, 0, rollup.FlagFraction}, flags)
}

// TestSameInputSameBytes also runs over the end of row groups.
func TestSameInputSameBytes(t *testing.T) {
	write := func() memFiles {
		files := memFiles{}
		w, err := rollup.NewFullWriter(files)
		require.NoError(t, err)
		for id := range 150 {
			rng := rand.New(rand.NewPCG(3, uint64(id)))
			var s samples
			for i := range 1000 {
				s.ts, s.v = append(s.ts, int64(i)*300_000), append(s.v, rng.NormFloat64())
			}
			require.NoError(t, w.Append("m", uint64(id), s.ts, s.v, nil))
		}
		_, err = w.Close()
		require.NoError(t, err)
		return files
	}
	a, b := write(), write()
	for _, step := range rollup.Steps() {
		require.True(t, bytes.Equal(a[step.Name].Bytes(), b[step.Name].Bytes()), step.Name)
	}
	f, err := parquet.OpenFile(bytes.NewReader(a["rollup-5m.parquet"].Bytes()), int64(a["rollup-5m.parquet"].Len()))
	require.NoError(t, err)
	require.Len(t, f.RowGroups(), 3)
	rows := a.read(t, "rollup-5m.parquet")
	require.Len(t, rows, 150*1000)
	for i, r := range rows {
		if r.SeriesID != uint64(i/1000) || r.FirstT != int64(i%1000)*300_000 {
			t.Fatalf("row %d is %v", i, r)
		}
	}
}

func TestNothingToRollUp(t *testing.T) {
	files := memFiles{}
	w, err := rollup.NewFullWriter(files)
	require.NoError(t, err)
	require.NoError(t, w.Append("m", 1, nil, nil, nil))
	require.Error(t, w.Append("m", 1, []int64{1}, nil, nil))
	require.Error(t, w.Append("m", 1, []int64{1}, []float64{1}, []int64{}))
	written, err := w.Close()
	require.NoError(t, err)
	require.Empty(t, written)
	require.Empty(t, files)
	require.ErrorIs(t, w.Append("m", 1, nil, nil, nil), rollup.ErrClosed)
	_, err = w.Close()
	require.ErrorIs(t, err, rollup.ErrClosed)
}

// failing fails in Create, in the n-th Write, or in Close.
type failing struct {
	create, close bool
	writes        int
}

var errDisk = errors.New("disk is full")

func (f *failing) Create(string) (io.WriteCloser, error) {
	if f.create {
		return nil, errDisk
	}
	return f, nil
}

func (f *failing) Write(p []byte) (int, error) {
	if f.writes--; f.writes == 0 {
		return 0, errDisk
	}
	return len(p), nil
}

func (f *failing) Close() error {
	if f.close {
		return errDisk
	}
	return nil
}

func TestErrorsAreNotSwallowed(t *testing.T) {
	for name, files := range map[string]*failing{
		"create": {create: true}, "magic": {writes: 1}, "chunk": {writes: 5}, "close": {close: true},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := rollup.NewFullWriter(files)
			require.NoError(t, err)
			err = w.Append("m", 1, []int64{1}, []float64{1}, nil)
			if err == nil {
				_, err = w.Close()
			}
			require.ErrorIs(t, err, errDisk)
		})
	}
}

func TestOpenReaderRefuses(t *testing.T) {
	_, err := rollup.OpenReader(bytes.NewReader([]byte("not a file")), 10)
	require.Error(t, err)
	for _, tc := range []struct {
		kv   []parquet.WriterOption
		want error
	}{
		{nil, rollup.ErrFormat},
		{[]parquet.WriterOption{parquet.KeyValueMetadata(rollup.VersionKey, "5"), parquet.KeyValueMetadata(rollup.StepKey, "1")}, checksum.ErrUnknownVersion},
		{[]parquet.WriterOption{parquet.KeyValueMetadata(rollup.VersionKey, "2"), parquet.KeyValueMetadata(rollup.StepKey, "x")}, rollup.ErrFormat},
	} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[struct{ X int64 }](&b, tc.kv...)
		require.NoError(t, w.Close())
		in := bytes.NewReader(b.Bytes())
		_, err = rollup.OpenReader(in, in.Size())
		require.ErrorIs(t, err, tc.want)
		_, err = rollup.OpenColumns(in, in.Size(), 1, func(uint64, int) error { return nil })
		require.ErrorIs(t, err, tc.want)
	}
}

// exactSum adds without rounding.
func exactSum(vs []float64) *big.Float {
	sum := new(big.Float).SetPrec(2200)
	for _, v := range vs {
		sum.Add(sum, new(big.Float).SetFloat64(v))
	}
	return sum
}
