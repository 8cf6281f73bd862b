package block_test

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// someRows picks series at random and returns their rows in a row group. counts are the rows of all
// series, in order.
func someRows(rng *rand.Rand, g *block.RowGroup, counts []int64) (rows []block.Rows) {
	first := int64(0)
	for _, n := range counts {
		from, to := max(first, g.FirstRow), min(first+n, g.FirstRow+g.Rows)
		first += n
		if from >= to || rng.IntN(3) == 0 {
			continue
		}
		if rng.IntN(3) == 0 {
			from += rng.Int64N(to - from)
		}
		rows = append(rows, block.Rows{From: from, N: to - from})
	}
	return rows
}

// inRange returns which of the rows have times in [mint, maxt], by range, and all of them.
func inRange(rows []block.Rows, mint, maxt int64, timeOf func(row int64) int64) (byRange [][]int64, all []int64) {
	for _, r := range rows {
		var in []int64
		for row := r.From; row < r.From+r.N; row++ {
			if t := timeOf(row); t >= mint && t <= maxt {
				in = append(in, row)
			}
		}
		byRange, all = append(byRange, in), append(all, in...)
	}
	return byRange, all
}

// TestRowReaders reads rows and times of random blocks and compares with the cursors, which read
// everything.
func TestRowReaders(t *testing.T) {
	var fr block.FloatReader
	var hr block.HistReader
	var er block.ExemplarReader
	shared, paged, spared := false, false, false
	framed, frameless := 0, 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 9))
		o := block.Options{Level: key.Level(rng.IntN(4)), HasST: true, RowGroupRows: 1 + rng.IntN(5000), FileBytes: 1 + rng.Int64N(1<<16)}
		inputs := randomInputs(rng, 60, 400)
		if seed%5 == 4 { // chunks of several stretches of pages
			o.RowGroupRows, o.FileBytes = 1<<16, 1<<24
			inputs = randomInputs(rng, 60, 2000)
		}
		if seed%2 == 0 {
			shareTimes(rng, inputs)
		}
		files, m := write(t, inputs, nil, o, block.Header{})
		r, err := block.Open(files)
		require.NoError(t, err)
		table, err := r.Series(series.NewTable(1), nil)
		require.NoError(t, err)
		var floatRows, histRows, exRows []int64
		for _, row := range table {
			floatRows, histRows, exRows = append(floatRows, row.Floats), append(histRows, row.Hists), append(exRows, row.Exemplars)
		}
		var all block.FloatRun
		require.NoError(t, r.Floats().Next(m.Floats, &all))
		hists, err := r.Hists().Next(m.Hists, nil)
		require.NoError(t, err)
		exemplars, err := r.Exemplars().Next(m.Exemplars, nil)
		require.NoError(t, err)
		for i := range m.Files {
			f := &m.Files[i]
			file, _, err := files.Open(f.Name)
			require.NoError(t, err)
			in := file
			for j := range f.RowGroups {
				g := &f.RowGroups[j]
				mint := g.MinT + rng.Int64N(g.MaxT-g.MinT+1)
				maxt := mint + rng.Int64N(g.MaxT-mint+1)
				if rng.IntN(3) == 0 {
					mint, maxt = math.MinInt64, math.MaxInt64
				}
				switch {
				case strings.HasPrefix(f.Name, "samples-"):
					rows := someRows(rng, g, floatRows)
					byRange, want := inRange(rows, mint, maxt, func(row int64) int64 { return all.TS[row] })
					spans := block.FloatFiles.AppendSpans(nil, g, rows)
					total := int64(0)
					for _, s := range spans {
						total += s[1]
					}
					require.Equal(t, total, rowBytes(g, rows))
					require.LessOrEqual(t, total, block.FloatFiles.Bytes(g))
					paged, spared = paged || len(g.Pages) > 0, spared || total < block.FloatFiles.Bytes(g)
					in := within{in, spans}
					n, err := fr.Select(in, g, true, rows, mint, maxt)
					require.NoError(t, err)
					require.Equal(t, int64(len(want)), n)
					for k, in := range byRange {
						require.Equal(t, int64(len(in)), fr.Rows()[k].N)
						require.True(t, len(in) == 0 || in[0] == fr.Rows()[k].From)
					}
					asked := int64(0)
					for _, x := range rows {
						asked += x.N
					}
					shared = shared || int64(len(fr.AllTimes())) < asked
					apart := make([]float64, n)
					stale, err := fr.Values(apart)
					require.NoError(t, err)
					require.True(t, stale || !slices.ContainsFunc(apart, value.IsStaleNaN), "a stale marker that nobody heard of")
					for k, row := range want {
						require.Equal(t, math.Float64bits(all.V[row]), math.Float64bits(apart[k]))
					}
					for k, in := range byRange {
						for m, row := range in {
							require.Equal(t, all.TS[row], fr.AllTimes()[fr.TimesAt(k)+m])
						}
					}
					if x, err := block.ReadFrame(in, g); !x.Empty() {
						require.NoError(t, err)
						framed++
						n, err := fr.SelectFramed(in, g, x, rows, mint, maxt)
						require.NoError(t, err)
						require.Equal(t, int64(len(want)), n)
						clear(apart)
						again, err := fr.Values(apart)
						require.NoError(t, err)
						require.Equal(t, stale, again)
						for k, row := range want {
							require.Equal(t, math.Float64bits(all.V[row]), math.Float64bits(apart[k]))
						}
						for k, in := range byRange {
							require.Equal(t, int64(len(in)), fr.Rows()[k].N)
							for m, row := range in {
								require.Equal(t, all.TS[row], fr.AllTimes()[fr.TimesAt(k)+m])
							}
						}
						whole := make([]float64, fr.SelectGroup(file, g, x))
						_, err = fr.Values(whole)
						require.NoError(t, err)
						for _, r := range rows {
							at, err := x.TimesOf(r)
							require.NoError(t, err)
							require.Equal(t, all.TS[r.From:r.From+r.N], fr.AllTimes()[at:at+int(r.N)])
							for k := r.From; k < r.From+r.N; k++ {
								require.Equal(t, math.Float64bits(all.V[k]), math.Float64bits(whole[k-g.FirstRow]))
							}
						}
						_, err = fr.Select(in, g, true, rows, mint, maxt)
						require.NoError(t, err)
					} else {
						require.NoError(t, err)
						frameless++
					}
					got := block.FloatRun{TS: []int64{7}, V: []float64{7}, ST: []int64{7}} // what was there stays
					require.NoError(t, fr.Read(&got))
					require.Len(t, got.V, len(want)+1)
					for k, row := range want {
						require.Equal(t, [3]uint64{uint64(all.TS[row]), math.Float64bits(all.V[row]), uint64(all.ST[row])},
							[3]uint64{uint64(got.TS[k+1]), math.Float64bits(got.V[k+1]), uint64(got.ST[k+1])})
					}
				case strings.HasPrefix(f.Name, "histograms-"):
					rows := someRows(rng, g, histRows)
					byRange, want := inRange(rows, mint, maxt, func(row int64) int64 { return hists[row].T })
					n, err := hr.Select(in, g, rows, mint, maxt)
					require.NoError(t, err)
					require.Equal(t, int64(len(want)), n)
					k := 0
					require.NoError(t, hr.Read(func(i int, ts int64, blob string) error {
						h, err := segment.DecodeHist([]byte(blob))
						require.NoError(t, err)
						require.Contains(t, byRange[i], want[k])
						require.Equal(t, hists[want[k]], h)
						require.Equal(t, h.T, ts)
						k++
						return nil
					}))
					require.Len(t, want, k)
				case f.Name == block.ExemplarsFile:
					rows := someRows(rng, g, exRows)
					byRange, want := inRange(rows, mint, maxt, func(row int64) int64 { return exemplars[row].Ts })
					n, err := er.Select(in, g, rows, mint, maxt)
					require.NoError(t, err)
					require.Equal(t, int64(len(want)), n)
					k := 0
					require.NoError(t, er.Read(func(i int, ts int64, v float64, lset string) error {
						l, err := segment.DecodeExemplarLabels([]byte(lset))
						require.NoError(t, err)
						require.Contains(t, byRange[i], want[k])
						require.Equal(t, exemplars[want[k]], exemplar.Exemplar{Labels: l, Value: v, Ts: ts, HasTs: true})
						k++
						return nil
					}))
					require.Len(t, want, k)
				}
			}
		}
	}
	require.True(t, shared, "no series shared its times")
	require.Positive(t, framed)
	require.Positive(t, frameless)
	require.True(t, paged && spared, "no pages were left out")
}

// within refuses to read outside of some ranges of a file.
type within struct {
	io.ReaderAt
	spans [][2]int64
}

func (w within) ReadAt(p []byte, off int64) (int, error) {
	for _, s := range w.spans {
		if off >= s[0] && off+int64(len(p)) <= s[0]+s[1] {
			return w.ReaderAt.ReadAt(p, off)
		}
	}
	return 0, fmt.Errorf("read of %d bytes at %d, outside of %v", len(p), off, w.spans)
}

// shareTimes gives most series the same times.
func shareTimes(rng *rand.Rand, inputs []input) {
	ts := randomSamples(rng, 400).TS
	for i := range inputs {
		if s := &inputs[i].Samples; rng.IntN(5) > 0 {
			s.TS, s.V, s.ST = ts, randomValues(rng, len(ts)), nil
		}
	}
}

// TestRowReadersRefuse: rows that are not in the row group, or not in order, and a file that is cut
// off.
func TestRowReadersRefuse(t *testing.T) {
	files, m := write(t, everything(), nil, block.Options{HasST: true}, block.Header{})
	f := fileNamed(t, m, "samples-0000.parquet")
	in, _, err := files.Open(f.Name)
	require.NoError(t, err)
	g := &f.RowGroups[0]
	var r block.FloatReader
	for name, rows := range map[string][]block.Rows{
		"behind": {{From: g.Rows - 1, N: 2}}, "before": {{From: -1, N: 2}}, "twice": {{From: 0, N: 2}, {From: 1, N: 1}}, "negative": {{From: 3, N: -1}},
	} {
		_, err := r.Select(in, g, true, rows, math.MinInt64, math.MaxInt64)
		require.ErrorIs(t, err, block.ErrFormat, name)
	}
	whole := []block.Rows{{From: 0, N: 3}}
	_, err = r.Select(strings.NewReader("PAR1"), g, true, whole, math.MinInt64, math.MaxInt64)
	require.ErrorContains(t, err, "unexpected EOF")
	short := *g
	short.Columns = g.Columns[:3]
	_, err = r.Select(in, &short, true, whole, math.MinInt64, math.MaxInt64)
	require.NoError(t, err, "times alone are there")
	require.ErrorIs(t, r.Read(&block.FloatRun{}), block.ErrFormat)
}

func fileNamed(t *testing.T, m block.Meta, name string) *block.File {
	for i := range m.Files {
		if m.Files[i].Name == name {
			return &m.Files[i]
		}
	}
	t.Fatalf("no file %s", name)
	return nil
}
