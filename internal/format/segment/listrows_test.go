package segment_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// TestListsOfRows: lists of some rows are those among the lists of all rows, in row groups where
// each list has one element and in others.
func TestListsOfRows(t *testing.T) {
	rows := slices.Clone(sampleRows())
	for i := range 200 {
		r := segment.Row{Labels: labels.FromStrings(model.MetricNameLabel, "single", "i", fmt.Sprintf("%03d", i)), Floats: []segment.Float{{T: someTime + int64(i*i), V: float64(i) / 3}}}
		if i == 150 {
			r.Floats = append(r.Floats, segment.Float{T: math.MaxInt32 << 20, V: math.Inf(-1)})
		}
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b segment.Row) int { return labels.Compare(a.Labels, b.Labels) })
	file, _, err := encodeInGroups(rows, nil, 30, 1000)
	require.NoError(t, err)
	c, err := segment.OpenColumns(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	defer c.Release()
	n := uint32(len(rows))
	for _, wanted := range [][]uint32{{}, {0}, {n - 1}, {0, n - 1}, {29, 30, 31}, {100, 101, 102, 150, 151}, every(n, 1), every(n, 7)} {
		counts, ts, err := c.Times(segment.ColTS, nil)
		require.NoError(t, err)
		gotCounts, gotTS, err := c.Times(segment.ColTS, wanted)
		require.NoError(t, err)
		wantCounts, wantTS := ofRows(counts, ts, wanted)
		require.Equal(t, wantCounts, gotCounts, "rows %d", wanted)
		require.Equal(t, wantTS, gotTS, "rows %d", wanted)

		counts, vals, err := c.Doubles(segment.ColValue, nil)
		require.NoError(t, err)
		gotCounts, gotVals, err := c.Doubles(segment.ColValue, wanted)
		require.NoError(t, err)
		wantCounts, wantVals := ofRows(counts, vals, wanted)
		require.Equal(t, wantCounts, gotCounts)
		require.Equal(t, bitsOf(wantVals), bitsOf(gotVals))

		counts, blobs, err := c.Blobs(segment.ColHist, nil)
		require.NoError(t, err)
		gotCounts, gotBlobs, err := c.Blobs(segment.ColHist, wanted)
		require.NoError(t, err)
		wantCounts, wantBlobs := ofRows(counts, blobs, wanted)
		require.Equal(t, wantCounts, gotCounts)
		require.Equal(t, wantBlobs, gotBlobs)
	}
	for _, read := range []func() error{
		func() error { _, _, err := c.Times(segment.ColTS, []uint32{n}); return err },
		func() error { _, _, err := c.Doubles(segment.ColValue, []uint32{0, n}); return err },
		func() error { _, _, err := c.Blobs(segment.ColHist, []uint32{n}); return err },
		func() error { _, _, err := c.Times("absent", []uint32{0}); return err },
		func() error { _, _, err := c.Times(segment.ColValue, []uint32{0}); return err },
	} {
		require.ErrorIs(t, read(), segment.ErrFormat)
	}
}

// every returns each step-th of n rows.
// TestPagesOfRows: where each row has one sample, values of some rows are read from their pages alone,
// so that damage in others is not noticed.
func TestPagesOfRows(t *testing.T) {
	rows := make([]segment.Row, 10_000)
	for i := range rows {
		rows[i] = segment.Row{Labels: labels.FromStrings(model.MetricNameLabel, "m", "i", fmt.Sprintf("%05d", i)), Floats: []segment.Float{{T: someTime, V: math.Sqrt(float64(i))}}}
	}
	file, _, err := segmenttest.Encode(rows, nil)
	require.NoError(t, err)
	read := func(wanted ...uint32) ([]float64, error) {
		c, err := segment.OpenColumns(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		defer c.Release()
		counts, vals, err := c.Doubles(segment.ColValue, wanted)
		require.True(t, err != nil || len(counts) == len(vals))
		return vals, err
	}
	wanted := []uint32{0, 4095, 4096, 5000, 8191, 8192, 9999}
	vals, err := read(wanted...)
	require.NoError(t, err)
	for i, row := range wanted {
		require.Equal(t, math.Sqrt(float64(row)), vals[i])
	}
	decoded, err := segmenttest.Rows(file)
	require.NoError(t, err)
	require.Equal(t, rows, decoded)

	c, err := segment.OpenColumns(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	span := c.Layout.Groups[0].Chunks[c.Layout.Column(parquetfile.ListPath(segment.ColValue)...)].Span
	c.Release()
	file[span.Offset+span.Length-1]++ // of the last page
	vals, err = read(5000)
	require.NoError(t, err)
	require.Equal(t, []float64{math.Sqrt(5000)}, vals)
	_, err = read(5000, 9000)
	require.ErrorIs(t, err, segment.ErrFormat)
}

func every(n, step uint32) (rows []uint32) {
	for i := uint32(0); i < n; i += step {
		rows = append(rows, i)
	}
	return rows
}

// ofRows returns the lists of rows among all lists.
func ofRows[T any](counts []int, all []T, rows []uint32) (of []int, out []T) {
	at := 0
	for row, n := range counts {
		if _, wanted := slices.BinarySearch(rows, uint32(row)); wanted {
			of, out = append(of, n), append(out, all[at:at+n]...)
		}
		at += n
	}
	return of, out
}
