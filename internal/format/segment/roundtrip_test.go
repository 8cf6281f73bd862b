package segment_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

const someTime = 1_700_000_000_000

func newRandom(seed uint64) random {
	rng := rand.New(rand.NewPCG(seed, 77))
	return random{Rand: rng, names: oddNames, minT: someTime, values: oddFloats, plain: seed%4 == 0}
}

// manyNames returns n label names, more than a file has columns for.
func manyNames(n int) []string {
	out := slices.Clone(oddNames)
	for i := range n {
		out = append(out, fmt.Sprintf("name_%d", i))
	}
	return out
}

// wide is a series that has all the names.
func wide(names []string) segment.Row {
	b := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, "wide"))
	for _, n := range names {
		b.Set(n, "x"+n)
	}
	return segment.Row{Labels: b.Labels(), Floats: []segment.Float{{T: someTime, V: 1}}}
}

func TestRoundTrip(t *testing.T) {
	type file struct {
		name         string
		rows         []segment.Row
		groupRows    int
		groupSamples int
	}
	files := []file{
		{"nothing", nil, 100, 100},
		{"a series without samples", []segment.Row{{Labels: labels.FromStrings("__name__", "m")}}, 100, 100},
		{"no labels at all", []segment.Row{{Floats: []segment.Float{{T: 0, V: 1}}}}, 100, 100},
		{"times before 1970", []segment.Row{{Labels: labels.FromStrings("__name__", "m"), Floats: []segment.Float{{T: -62167219200000, V: 1}, {T: -1, V: 2}}}}, 100, 100},
		{"the last time", []segment.Row{{Labels: labels.FromStrings("__name__", "m"), Floats: []segment.Float{{T: 253402300799999, V: 1}}}}, 100, 100},
		{"more names than columns", append(newRandom(1).rows(40), wide(manyNames(segment.MaxLabelColumns+100))), 30, 1000},
	}
	for seed := range uint64(24) {
		r := newRandom(seed)
		files = append(files, file{fmt.Sprintf("random %d", seed), r.rows(r.IntN(80)), 1 + r.IntN(100), 1 + r.IntN(500)})
	}
	db := openDuckDB(t)
	for _, f := range files {
		t.Run(f.name, func(t *testing.T) {
			b, info, err := encodeInGroups(f.rows, nil, f.groupRows, f.groupSamples)
			require.NoError(t, err)
			want := expect(t, f.rows)
			require.Equal(t, want, parquetRows(t, b))
			path := filepath.Join(t.TempDir(), "s.parquet")
			require.NoError(t, os.WriteFile(path, b, 0o600))
			require.Equal(t, want, duckdbRows(t, db, path, info))
			again, err := segment.ReadInfo(bytes.NewReader(b), int64(len(b)))
			require.NoError(t, err)
			require.Equal(t, info, again)
			checkInfo(t, info, f.rows)
		})
	}
}

// checkInfo compares a footer with the rows.
func checkInfo(t *testing.T, info segment.Info, rows []segment.Row) {
	t.Helper()
	var times []int64
	names := map[string]bool{}
	samples, hists, exemplars, starts := 0, 0, 0, 0
	for _, r := range rows {
		r.Labels.Range(func(l labels.Label) { names[l.Name] = true })
		samples += len(r.Floats) + len(r.Hists)
		hists += len(r.Hists)
		exemplars += len(r.Exemplars)
		for _, s := range r.Floats {
			times = append(times, s.T)
			if s.ST != 0 {
				starts++
			}
		}
		for _, s := range r.Hists {
			times = append(times, s.T)
		}
		for _, s := range r.Exemplars {
			times = append(times, s.Ts)
		}
	}
	require.Equal(t, segment.FormatVersion, info.Version)
	require.Equal(t, int64(len(rows)), info.Rows)
	require.Equal(t, int64(samples), info.Samples)
	require.Equal(t, []bool{hists > 0, exemplars > 0, starts > 0}, []bool{info.HasHist, info.HasExemplars, info.HasST})
	if len(times) > 0 {
		require.Equal(t, []int64{slices.Min(times), slices.Max(times)}, []int64{info.MinT, info.MaxT})
	} else {
		require.Less(t, info.MaxT, info.MinT)
	}
	delete(names, model.MetricNameLabel)
	require.Len(t, names, len(info.LabelColumns)+len(info.MapNames))
	require.LessOrEqual(t, len(info.LabelColumns), segment.MaxLabelColumns)
	require.True(t, slices.IsSorted(info.LabelColumns))
	require.True(t, slices.IsSorted(info.MapNames))
	for _, n := range info.LabelColumns {
		require.True(t, names[n])
		require.True(t, segment.HasColumn(n))
	}
	for _, n := range info.MapNames {
		require.True(t, names[n])
		require.True(t, !segment.HasColumn(n) || len(info.LabelColumns) == segment.MaxLabelColumns && n > info.LabelColumns[segment.MaxLabelColumns-1], n)
	}
}

// TestRowGroups expects the row groups that the bounds require.
func TestRowGroups(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		rows, samples           int // of each row
		groupRows, groupSamples int
		want                    []int64
	}{
		{"one", 10, 3, 100, 100, []int64{10}},
		{"by rows", 10, 3, 4, 100, []int64{4, 4, 2}},
		{"by samples, the series that reaches the limit included", 10, 3, 100, 7, []int64{3, 3, 3, 1}},
		{"by samples, exactly", 10, 3, 100, 6, []int64{2, 2, 2, 2, 2}},
		{"a series larger than a group", 3, 50, 100, 7, []int64{1, 1, 1}},
		{"without samples", 5, 0, 2, 1, []int64{2, 2, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var rows []segment.Row
			for i := range tc.rows {
				r := segment.Row{Labels: labels.FromStrings("__name__", fmt.Sprintf("m%02d", i))}
				for j := range tc.samples {
					r.Floats = append(r.Floats, segment.Float{T: int64(j), V: 1})
				}
				rows = append(rows, r)
			}
			b, _, err := encodeInGroups(rows, nil, tc.groupRows, tc.groupSamples)
			require.NoError(t, err)
			f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
			require.NoError(t, err)
			var got []int64
			for _, g := range f.RowGroups() {
				got = append(got, g.NumRows())
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, expect(t, rows), parquetRows(t, b))
		})
	}
}

// TestWriterCarriesNothingOver writes different batches with one writer and expects the bytes of a
// fresh writer.
func TestWriterCarriesNothingOver(t *testing.T) {
	w, err := segment.NewWriter()
	require.NoError(t, err)
	for i := range uint64(30) {
		r := newRandom(i % 7)
		rows := r.rows(int(i*7) % 50)
		if i%5 == 0 {
			rows = append(rows, wide(manyNames(int(i)*30)))
		}
		want, _, err := segmenttest.Encode(rows, nil)
		require.NoError(t, err)
		got, _, err := segmenttest.EncodeWith(w, rows, nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "file %d", i)
	}
}

func TestMetadataAlone(t *testing.T) {
	meta := []segment.Metadata{{Metric: "b", Type: "gauge", Help: "<ünï> & co.", Unit: "s"}, {Metric: "a", Type: "counter"}}
	b, info, err := segmenttest.Encode(nil, meta)
	require.NoError(t, err)
	again, err := segment.ReadInfo(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, info, again)
	require.Equal(t, []segment.Metadata{meta[1], meta[0]}, info.Metadata)
	require.Equal(t, int64(0), info.Rows)
	require.Less(t, info.MaxT, info.MinT)
	path := filepath.Join(t.TempDir(), "s.parquet")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.Empty(t, duckdbRows(t, openDuckDB(t), path, info))
}

func TestEncodeRefusesTwoRowsForOneSeries(t *testing.T) {
	l := labels.FromStrings("__name__", "m", "a", "b")
	_, _, err := segmenttest.Encode([]segment.Row{{Labels: l}, {Labels: labels.FromStrings("__name__", "other")}, {Labels: l}}, nil)
	require.ErrorContains(t, err, `{__name__="m", a="b"}`)
}

func TestHasColumn(t *testing.T) {
	for name, want := range map[string]bool{
		"": false, "a": true, "_": true, "a9": true, "9a": false, "A": false, "aB": false, "a-b": false, "a.b": false, "ü": false, "__name": true,
		strings.Repeat("a", 128): true, strings.Repeat("a", 129): false,
	} {
		require.Equal(t, want, segment.HasColumn(name), name)
	}
}

func TestSampleCodecs(t *testing.T) {
	for seed := range uint64(200) {
		r := newRandom(4*seed + 1)
		for _, h := range r.hists() {
			b, err := segment.EncodeHist(h)
			require.NoError(t, err)
			got, err := segment.DecodeHist(b)
			require.NoError(t, err)
			again, err := segment.EncodeHist(got)
			require.NoError(t, err)
			require.Equal(t, b, again)
			require.Equal(t, []int64{h.T, h.ST}, []int64{got.T, got.ST})
			if h.FH != nil {
				require.Nil(t, got.H)
				require.True(t, h.FH.Equals(got.FH), "%v\n%v", h.FH, got.FH)
				require.Equal(t, math.Float64bits(h.FH.Sum), math.Float64bits(got.FH.Sum))
			} else {
				require.Nil(t, got.FH)
				require.True(t, h.H.Equals(got.H), "%v\n%v", h.H, got.H)
				require.Equal(t, math.Float64bits(h.H.Sum), math.Float64bits(got.H.Sum))
			}
		}
		for _, e := range r.exemplars() {
			b, err := segment.EncodeExemplarLabels(e)
			require.NoError(t, err)
			got, err := segment.DecodeExemplarLabels(b)
			require.NoError(t, err)
			require.Equal(t, e.Labels.String(), got.String())
		}
	}
	b, err := segment.EncodeExemplarLabels(exemplar.Exemplar{})
	require.NoError(t, err)
	require.Equal(t, "{}", string(b))
	for _, bad := range []string{"", "[]", "{", `{"a":1}`} {
		_, err := segment.DecodeExemplarLabels([]byte(bad))
		require.Error(t, err, bad)
	}
	_, err = segment.DecodeHist([]byte{1})
	require.Error(t, err)
}
