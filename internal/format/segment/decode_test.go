package segment_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// batchRows turns a batch back into rows.
func batchRows(t testing.TB, b *segment.Batch, table *series.Table) []segment.Row {
	t.Helper()
	v := table.View()
	require.Len(t, b.End, len(b.Rows))
	require.Len(t, b.V, len(b.TS))
	rows := make([]segment.Row, len(b.Rows))
	from := 0
	for i, ref := range b.Rows {
		lb := labels.NewBuilder(labels.EmptyLabels())
		lb.Set(model.MetricNameLabel, v.Metrics[v.Metric(ref)])
		for _, p := range v.Pairs(ref) {
			lb.Set(v.Names[p.Name], v.Values[p.Name][p.Value])
		}
		rows[i].Labels = lb.Labels()
		for j := from; j < b.End[i]; j++ {
			f := segment.Float{T: b.TS[j], V: b.V[j]}
			if b.ST != nil {
				f.ST = b.ST[j]
			}
			rows[i].Floats = append(rows[i].Floats, f)
		}
		from = b.End[i]
	}
	require.Equal(t, len(b.TS), from)
	for _, h := range b.Hists {
		require.NotEmpty(t, h.Samples)
		rows[h.Row].Hists = h.Samples
	}
	for _, e := range b.Exemplars {
		require.NotEmpty(t, e.Exemplars)
		rows[e.Row].Exemplars = e.Exemplars
	}
	return rows
}

// sameRows compares what two readers decoded from a file; floats by their bits.
func sameRows(t *testing.T, want, got []segment.Row) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Labels.String(), got[i].Labels.String(), "row %d", i)
	}
	require.Equal(t, expect(t, want), expect(t, got))
}

// TestDecode decodes encoded segments into tables that have none, some or all of the series.
func TestDecode(t *testing.T) {
	known := series.NewTable(99)
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRandom(seed)
			rows := r.rows(r.IntN(80))
			if seed%7 == 3 {
				rows = append(rows, wide(manyNames(segment.MaxLabelColumns+100)))
			}
			meta := []segment.Metadata{{Metric: "up", Type: "gauge", Help: "h"}}
			file, _, err := encodeInGroups(rows, meta, 1+r.IntN(100), 1+r.IntN(500))
			require.NoError(t, err)
			want, err := segmenttest.Rows(file)
			require.NoError(t, err)
			for _, table := range []*series.Table{series.NewTable(seed), known, known} {
				b, err := segment.Decode(slices.Clone(file), table, nil)
				require.NoError(t, err)
				require.Nil(t, b.View)
				require.Equal(t, meta, b.Metadata)
				sameRows(t, want, batchRows(t, b, table))
				v := table.View()
				require.True(t, slices.IsSortedFunc(b.Rows, v.Compare))
			}
		})
	}
}

// TestDecodeOwnsItsMemory changes the file after it was decoded.
func TestDecodeOwnsItsMemory(t *testing.T) {
	rows := newRandom(5).rows(50)
	file, _, err := segmenttest.Encode(rows, nil)
	require.NoError(t, err)
	want, err := segmenttest.Rows(file)
	require.NoError(t, err)
	table := series.NewTable(1)
	b, err := segment.Decode(file, table, nil)
	require.NoError(t, err)
	clear(file)
	sameRows(t, want, batchRows(t, b, table))
}

// TestDecodeMeetsKnownSeries expects the references of series that were interned before.
func TestDecodeMeetsKnownSeries(t *testing.T) {
	table := series.NewTable(1)
	ref, err := table.Intern([]series.Label{{Name: "Zone", Value: "z"}, {Name: "__name__", Value: "up"}, {Name: "a", Value: "b"}})
	require.NoError(t, err)
	file, _, err := segmenttest.Encode([]segment.Row{{Labels: labels.FromStrings("__name__", "up", "a", "b", "Zone", "z"), Floats: []segment.Float{{T: 1, V: 2}}}}, nil)
	require.NoError(t, err)
	for range 2 {
		b, err := segment.Decode(file, table, nil)
		require.NoError(t, err)
		require.Equal(t, []series.Ref{ref}, b.Rows)
		require.Equal(t, 1, table.Len())
	}
}

func TestDecodeRefuses(t *testing.T) {
	file, _, err := segmenttest.Encode(newRandom(8).rows(20), nil)
	require.NoError(t, err)
	for name, bad := range map[string][]byte{
		"nothing":       nil,
		"no Parquet":    bytes.Repeat([]byte("x"), 100),
		"cut off":       file[:len(file)-1],
		"front missing": file[1:],
	} {
		_, err := segment.Decode(bad, series.NewTable(1), nil)
		require.ErrorIs(t, err, segment.ErrFormat, name)
	}
	later := bytes.Replace(file, []byte("promlake.segment.version\x18\x012"), []byte("promlake.segment.version\x18\x013"), 1)
	require.NotEqual(t, file, later)
	_, err = segment.Decode(later, series.NewTable(1), nil)
	require.ErrorIs(t, err, checksum.ErrDamaged, "its checksum is not that of a later version")
}

// checkCorrupt decodes arbitrary bytes: Decode rejects them, or its result is consistent.
func checkCorrupt(t *testing.T, data []byte) {
	t.Helper()
	table := series.NewTable(1)
	b, err := segment.Decode(data, table, nil)
	if err != nil {
		require.ErrorIs(t, err, segment.ErrFormat)
		return
	}
	for _, r := range batchRows(t, b, table) {
		for i := 1; i < len(r.Floats); i++ {
			require.Less(t, r.Floats[i-1].T, r.Floats[i].T)
		}
	}
}

// TestDecodeCorrupt flips bits of small files with uncompressed and with compressed pages.
func TestDecodeCorrupt(t *testing.T) {
	for seed := range uint64(6) {
		r := newRandom(seed)
		file, _, err := encodeInGroups(r.rows(4+10*int(seed)), nil, 1+r.IntN(30), 1+r.IntN(50))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(seed, 9))
		for range 500 {
			bad := slices.Clone(file)
			for range 1 + rng.IntN(3) {
				bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
			}
			checkCorrupt(t, bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for seed := range uint64(4) {
		r := newRandom(seed)
		file, _, err := encodeInGroups(r.rows(1+5*int(seed)), nil, 1+r.IntN(30), 1+r.IntN(50))
		require.NoError(f, err)
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkCorrupt(t, data) })
}

// BenchmarkDecode decodes series like node_exporter's, into tables that have and do not have them.
func BenchmarkDecode(b *testing.B) {
	for _, samples := range []int{1, 100} {
		for _, known := range []bool{true, false} {
			b.Run(fmt.Sprintf("samples=%d/known=%t", samples, known), func(b *testing.B) {
				rows := fleet(20_000 / samples * 2)
				for i := range rows {
					for j := 1; j < samples; j++ {
						rows[i].Floats = append(rows[i].Floats, segment.Float{T: rows[i].Floats[0].T + int64(j)*10_000, V: math.Floor(float64(i*j) / 7)})
					}
				}
				file, info, err := segmenttest.Encode(rows, nil)
				require.NoError(b, err)
				table := series.NewTable(1)
				_, err = segment.Decode(file, table, nil)
				require.NoError(b, err)
				b.ReportAllocs()
				for b.Loop() {
					if !known {
						table = series.NewTable(1)
					}
					_, err := segment.Decode(file, table, nil)
					require.NoError(b, err)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(int64(b.N)*info.Samples), "ns/sample")
			})
		}
	}
}
