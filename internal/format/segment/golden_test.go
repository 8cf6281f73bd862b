package segment_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	goldenFile   = "testdata/segment-v2.parquet"
	goldenSchema = "../../../schemas/segment.schema.txt"
	goldenSpec   = "../../../schemas/segment.md"
)

var goldenMetadata = []segment.Metadata{{Metric: "rpc_seconds", Type: "histogram", Help: "Time of a call.", Unit: "seconds"}, {Metric: "up", Type: "gauge"}}

// golden compares got with a file, or writes the file with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s differs: a change of the format wants a new FormatVersion, another change of bytes -update", file)
}

// TestGoldenFile pins the bytes of a small file with all columns, and that it can be read.
func TestGoldenFile(t *testing.T) {
	b, info, err := encodeInGroups(sampleRows(), goldenMetadata, 30, 100)
	require.NoError(t, err)
	golden(t, goldenFile, b)
	require.Equal(t, expect(t, sampleRows()), parquetRows(t, b))
	require.Equal(t, expect(t, sampleRows()), duckdbRows(t, openDuckDB(t), goldenFile, info))
	again, err := segment.ReadInfo(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	require.Equal(t, info, again)
	require.Equal(t, goldenMetadata, again.Metadata)
}

// TestGoldenSchema pins the schema of that file as other implementations read it.
func TestGoldenSchema(t *testing.T) {
	b, err := os.ReadFile(goldenFile)
	require.NoError(t, err)
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	require.NoError(t, err)
	golden(t, goldenSchema, []byte(f.Schema().String()+"\n"))
}

// example matches a row of the specification's table of identifiers: series, hashed bytes,
// identifier.
var example = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([0-9a-f ]+)` \\| `([0-9]+)` \\|$")

// TestSpecifiedIDs computes the identifiers of the specification's examples.
func TestSpecifiedIDs(t *testing.T) {
	spec, err := os.ReadFile(goldenSpec)
	require.NoError(t, err)
	rows := example.FindAllStringSubmatch(string(spec), -1)
	require.Len(t, rows, 3)
	for _, r := range rows {
		lset, err := parser.NewParser(parser.Options{}).ParseMetric(r[1])
		require.NoError(t, err)
		want, err := strconv.ParseUint(r[3], 10, 64)
		require.NoError(t, err)
		require.Equal(t, want, segmenttest.ID(lset), r[1])
		hashed, err := hex.DecodeString(regexp.MustCompile(" ").ReplaceAllString(r[2], ""))
		require.NoError(t, err)
		require.Equal(t, want, xxh3.Hash(hashed), r[1])
	}
}

// encodeInGroups is segmenttest.Encode with other bounds of a row group.
func encodeInGroups(rows []segment.Row, meta []segment.Metadata, groupRows, groupSamples int) ([]byte, segment.Info, error) {
	w, err := segment.NewWriterInGroups(groupRows, groupSamples)
	if err != nil {
		return nil, segment.Info{}, err
	}
	return segmenttest.EncodeWith(w, rows, meta)
}
