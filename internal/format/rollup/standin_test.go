package rollup_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
)

// writtenSeries are rollups of several row groups, with buckets of all kinds.
func writtenSeries(t *testing.T, series, buckets int) memFiles {
	t.Helper()
	rng := rand.New(rand.NewPCG(8, 1))
	odd := []float64{stale, stale, math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}
	files := memFiles{}
	w, err := rollup.NewFullWriter(files)
	require.NoError(t, err)
	for i := range series {
		var s samples
		for b := range int64(buckets) {
			for at := rng.Int64N(200_000); at <= 300_000; at += 1 + rng.Int64N(200_000) {
				s.ts = append(s.ts, b*300_000+at)
				if v := float64(rng.IntN(100)) / 4; rng.IntN(4) > 0 {
					s.v = append(s.v, v)
				} else {
					s.v = append(s.v, odd[rng.IntN(len(odd))])
				}
			}
		}
		for k := 1; k < len(s.ts); k++ { // a bucket's end may be the next one's first
			s.ts[k] = max(s.ts[k], s.ts[k-1]+1)
		}
		require.NoError(t, w.Append("m", uint64(1000-i), s.ts, s.v, nil))
	}
	_, err = w.Close()
	require.NoError(t, err)
	return files
}

// TestStandIns: the stand-ins follow from the rows.
func TestStandIns(t *testing.T) {
	files := writtenSeries(t, 24, 3000)
	for _, step := range rollup.Steps() {
		rows, in := files.read(t, step.Name), bytes.NewReader(files[step.Name].Bytes())
		at := 0
		c, err := rollup.OpenColumns(in, in.Size(), int64(len(rows)), func(id uint64, n int) error {
			for range n {
				require.Equal(t, rows[at].SeriesID, id)
				at++
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, len(rows), at)
		require.Equal(t, step.Millis, c.Step)
		require.Equal(t, len(rows) > 64<<10, c.Groups() > 1, step.Name)
		require.Positive(t, c.Bytes())
		for s, want := range map[rollup.StandIn]func(r *rollup.Row) (int64, float64){
			rollup.StandInMax:   func(r *rollup.Row) (int64, float64) { return r.LastT, r.Max },
			rollup.StandInMin:   func(r *rollup.Row) (int64, float64) { return r.LastT, r.Min },
			rollup.StandInFirst: func(r *rollup.Row) (int64, float64) { return r.FirstT, r.First },
			rollup.StandInLast:  func(r *rollup.Row) (int64, float64) { return r.LastT, r.Last },
			rollup.StandInInstant: func(r *rollup.Row) (int64, float64) {
				if r.StaleT > r.LastT {
					return r.StaleT, stale
				}
				return r.LastT, r.Last
			},
			rollup.StandInCount: func(r *rollup.Row) (int64, float64) { return r.LastT, float64(r.Count) },
		} {
			at := 0
			for g := range c.Groups() {
				require.NotEmpty(t, c.Spans(g, s))
				ts, v, err := c.StandIns(in, g, s)
				require.NoError(t, err)
				require.Len(t, ts, int(c.Rows(g)))
				for i := range ts {
					r := &rows[at].Row
					wantT, wantV := want(r)
					if r.Count == 0 {
						wantT, wantV = r.StaleT, stale
					}
					if ts[i] != wantT || math.Float64bits(v[i]) != math.Float64bits(wantV) {
						t.Fatalf("stand-in %d of row %d: %v at %d, want %v at %d", s, at, v[i], ts[i], wantV, wantT)
					}
					at++
				}
			}
			require.Equal(t, len(rows), at)
		}
	}
}

// TestOpenColumnsRefuses: a file that is not a rollup, or has too many rows, is refused, and damage
// is an error or goes unnoticed.
func TestOpenColumnsRefuses(t *testing.T) {
	files := writtenSeries(t, 3, 20)
	whole := files["rollup-5m.parquet"].Bytes()
	ignore := func(uint64, int) error { return nil }
	_, err := rollup.OpenColumns(bytes.NewReader(whole), int64(len(whole)), 10, ignore)
	require.ErrorIs(t, err, rollup.ErrFormat)
	require.ErrorContains(t, err, "10 buckets")
	_, err = rollup.OpenColumns(bytes.NewReader(whole), int64(len(whole))-1, 1000, ignore)
	require.ErrorIs(t, err, rollup.ErrFormat)
	_, err = rollup.OpenColumns(bytes.NewReader(whole), int64(len(whole)), 1000, func(uint64, int) error { return bytes.ErrTooLarge })
	require.ErrorIs(t, err, bytes.ErrTooLarge)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		b := bytes.Clone(whole)
		b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		in := bytes.NewReader(b)
		c, err := rollup.OpenColumns(in, in.Size(), 1000, ignore)
		for g := 0; err == nil && g < c.Groups(); g++ {
			_, _, err = c.StandIns(in, g, rollup.StandInMax)
		}
		if err != nil {
			require.ErrorIs(t, err, rollup.ErrFormat)
		}
	}
}
