package segment_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/checksumtest"
)

// listed are the columns that Columns reads.
var listed = struct{ times, doubles, blobs []string }{
	[]string{segment.ColTS, segment.ColST, segment.ColHistTS, segment.ColExTS},
	[]string{segment.ColValue, segment.ColHistCount, segment.ColHistSum, segment.ColExValue},
	[]string{segment.ColHist, segment.ColExLabels},
}

// infoText formats the content of the footer.
func infoText(file []byte) (string, error) {
	info, err := segment.ReadInfo(bytes.NewReader(file), int64(len(file)))
	return fmt.Sprintf("%+v", info), err
}

// readColumns formats what Columns reads.
func readColumns(file []byte) (string, error) {
	c, err := segment.OpenColumns(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, col := range listed.times {
		n, vals, err := c.Times(col, nil)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, col, n, vals)
	}
	for _, col := range listed.doubles {
		n, vals, err := c.Doubles(col, nil)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(&out, col, n, bitsOf(vals))
	}
	for _, col := range listed.blobs {
		n, vals, err := c.Blobs(col, nil)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s %d %q\n", col, n, vals)
	}
	return out.String(), nil
}

func bitsOf(vals []float64) []uint64 {
	out := make([]uint64, len(vals))
	for i, v := range vals {
		out[i] = math.Float64bits(v)
	}
	return out
}

// decodeAll formats what Decode returns, which is everything.
func decodeAll(file []byte) (string, error) {
	table := series.NewTable(1)
	b, err := segment.Decode(file, table, nil)
	if err != nil {
		return "", err
	}
	v := table.View()
	var out strings.Builder
	for _, ref := range b.Rows {
		fmt.Fprintln(&out, v.Metrics[v.Metric(ref)])
		for _, p := range v.Pairs(ref) {
			fmt.Fprintf(&out, "%q=%q\n", v.Names[p.Name], v.Values[p.Name][p.Value])
		}
	}
	fmt.Fprintln(&out, b.Rows, b.End, b.TS, bitsOf(b.V), b.ST, b.Metadata)
	for _, r := range b.Hists {
		for _, h := range r.Samples {
			enc, err := segment.EncodeHist(h)
			fmt.Fprintln(&out, r.Row, enc, err)
		}
	}
	for _, r := range b.Exemplars {
		for _, e := range r.Exemplars {
			fmt.Fprintln(&out, r.Row, e.Labels, e.Ts, math.Float64bits(e.Value))
		}
	}
	return out.String(), nil
}

// readRows formats what Columns reads of some rows.
func readRows(file []byte) (string, error) {
	c, err := segment.OpenColumns(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return "", err
	}
	defer c.Release()
	rows := []uint32{0, 7, 40, 43}
	counts, ts, err := c.Times(segment.ColTS, rows)
	if err != nil {
		return "", err
	}
	_, vals, err := c.Doubles(segment.ColValue, rows)
	if err != nil {
		return "", err
	}
	_, blobs, err := c.Blobs(segment.ColHist, rows)
	return fmt.Sprintf("%d %d %x %q", counts, ts, bitsOf(vals), blobs), err
}

var readers = map[string]func([]byte) (string, error){"info": infoText, "columns": readColumns, "rows": readRows, "decode": decodeAll}

// oldFile is the golden segment as version 1 had it in the end, and oldChecksums with the checksums of
// page headers that segments had before.
const (
	oldFile      = "testdata/segment-v1.parquet"
	oldChecksums = "testdata/segment-v1-checksums-1.parquet"
)

// version matches the version in the text of a segment's info.
var version = regexp.MustCompile(`Version:[0-9]+`)

// TestVersion1 reads a segment of version 1.
func TestVersion1(t *testing.T) {
	now, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	old, err := os.ReadFile(oldFile)
	require.NoError(t, err)
	for name, read := range readers {
		want, err := read(now)
		require.NoError(t, err)
		got, err := read(old)
		require.NoError(t, err)
		require.Equal(t, version.ReplaceAllString(want, "Version:1"), got, name)
	}
}

// TestEveryByteIsChecked changes every byte of the golden segment: each reader returns an error, or
// the same as before.
func TestEveryByteIsChecked(t *testing.T) {
	for _, path := range []string{goldenFile, oldChecksums} {
		file, err := os.ReadFile(path)
		require.NoError(t, err)
		for name, read := range readers {
			checksumtest.Sweep(t, name, file, checksumtest.OneAndAllBits, func() (string, error) { return read(file) }, segment.ErrFormat)
		}
	}
}

// TestOldChecksums reads a segment with the checksums of page headers that segments had before.
func TestOldChecksums(t *testing.T) {
	now, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	old, err := os.ReadFile(oldChecksums)
	require.NoError(t, err)
	require.NotEqual(t, now, old)
	for name, read := range readers {
		if name == "info" {
			continue // it has the offsets of pages, which differ
		}
		want, err := read(now)
		require.NoError(t, err)
		got, err := read(old)
		require.NoError(t, err)
		require.Equal(t, want, got, name)
	}
}

// filter matches the filter in the text of a segment's info.
var filter = regexp.MustCompile(`Values:\[[0-9 ]+\]`)

// TestWithoutChecksums reads a segment that was written before pages had checksums, and before
// segments had filters.
func TestWithoutChecksums(t *testing.T) {
	sealed, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	old, err := os.ReadFile("testdata/segment-v1-unsealed.parquet")
	require.NoError(t, err)
	require.NotContains(t, string(old), "promlake.checksums")
	for name, read := range readers {
		want, err := read(sealed)
		require.NoError(t, err)
		got, err := read(old)
		require.NoError(t, err)
		require.NotRegexp(t, filter, got, name)
		require.Equal(t, version.ReplaceAllString(filter.ReplaceAllString(want, "Values:[]"), "Version:1"), got, name)
	}
}
