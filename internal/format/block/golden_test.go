package block_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/tests/support/schematest"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	goldenBlock  = "testdata/block-v2"
	goldenSchema = "../../../schemas/block.schema.txt"
)

// golden holds got against a file, or writes it with -update.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s differs: a change of the format wants a new FormatVersion, another change of bytes -update", file)
}

func goldenHeader() block.Header {
	return block.Header{
		Level: key.L2h, Window: key.WindowOf(0), Slice: block.Slice{Index: 0, Of: 1},
		Rank: ulid.MustParse("01HF7YAT00TSV4RRFFQ69G5FAV"), DeletesThrough: ulid.MustParse("01HF7YAT00ZZZZZZZZZZZZZZZZ"),
		Sources: []string{"v1/anonymous/segments/19700101T0000Z/01HF7YAT00TSV4RRFFQ69G5FAV.parquet"},
	}
}

// TestGoldenBlock pins the bytes of a small block with files of all kinds, and that they can be
// read.
func TestGoldenBlock(t *testing.T) {
	o := block.Options{Level: key.L2h, HasST: true, RowGroupRows: 100}
	files, m := write(t, everything(), someMetadata, o, goldenHeader())
	entries, err := os.ReadDir(goldenBlock)
	if !*update {
		require.NoError(t, err)
		require.Len(t, entries, len(files.closed))
	}
	for name, b := range files.closed {
		golden(t, filepath.Join(goldenBlock, name), b)
	}
	require.Equal(t, expect(t, everything()), read(t, files))
	checkIndex(t, files, m, o)
}

// TestGoldenSchema pins the schemas of its files as other implementers see them.
func TestGoldenSchema(t *testing.T) {
	var out strings.Builder
	for _, name := range []string{block.SeriesFile, block.SamplesFile(0), block.HistogramsFile(0), block.ExemplarsFile, block.MetadataFile} {
		b, err := os.ReadFile(filepath.Join(goldenBlock, name))
		require.NoError(t, err)
		out.WriteString(openParquet(t, b).Schema().String() + "\n")
	}
	golden(t, goldenSchema, []byte(out.String()))
}

// TestMetaSchema holds meta.json files of several kinds against the published JSON Schema.
func TestMetaSchema(t *testing.T) {
	full, _ := write(t, everything(), someMetadata, block.Options{HasST: true, RowGroupRows: 7}, goldenHeader())
	empty, _ := write(t, nil, nil, block.Options{}, block.Header{})
	docs := [][]byte{full.closed[block.MetaFile], empty.closed[block.MetaFile]}
	b := full.closed[block.MetaFile]
	for _, change := range [][2]string{{`"version":2`, `"version":3`}, {`"level":"2h"`, `"level":"3h"`}, {`"first_row":0`, `"first_row":-1`}, {`"rank"`, `"grade"`}} {
		docs = append(docs, bytes.Replace(b, []byte(change[0]), []byte(change[1]), 1))
	}
	for i, wrong := range schematest.Validate(t, "../../../schemas/meta.schema.json", docs...) {
		require.Equal(t, i < 2, wrong == "", "%s: %s", docs[i], wrong)
	}
}
