package index_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
)

// tableText formats the content of a series table.
func tableText(t *index.Table) string {
	var out strings.Builder
	r := t.NewReader()
	for row := range t.Rows() {
		floats, n := t.Floats(row)
		hists, k := t.Hists(row)
		exs, x := t.Exemplars(row)
		from, upto := t.Times(row)
		id, _ := t.ID(row)
		fmt.Fprintln(&out, r.Labels(row), id, t.Key(row), floats, n, hists, k, exs, x, from, upto)
	}
	return out.String()
}

// TestEveryByteIsChecked flips a bit in every byte of the golden segment and series table, and
// expects an error or the same series.
func TestEveryByteIsChecked(t *testing.T) {
	golden := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join("../../format", name))
		require.NoError(t, err)
		return b
	}
	m, err := block.ReadMeta(golden("block/testdata/block-v2/meta.json"))
	require.NoError(t, err)
	some := index.Some{Seed: 1, Sets: everything, Most: 1 << 20}
	for _, tc := range []struct {
		name string
		load func(b []byte) (*index.Table, error)
	}{
		{"segment/testdata/segment-v2.parquet", func(b []byte) (*index.Table, error) {
			return index.LoadSegment(bytes.NewReader(b), int64(len(b)), 1, nil)
		}},
		{"segment/testdata/segment-v2.parquet", func(b []byte) (*index.Table, error) {
			return some.Segment(t.Context(), bytes.NewReader(b), int64(len(b)))
		}},
		{"block/testdata/block-v2/series.parquet", func(b []byte) (*index.Table, error) {
			return some.Block(t.Context(), bytes.NewReader(b), int64(len(b)), &m)
		}},
		{"block/testdata/block-v2/series.parquet", func(b []byte) (*index.Table, error) {
			return index.LoadBlock(bytes.NewReader(b), int64(len(b)), &m, 1)
		}},
	} {
		file := golden(tc.name)
		table, err := tc.load(file)
		require.NoError(t, err)
		want, found := tableText(table), 0
		for at := range file {
			file[at] ^= 1 << (at % 8)
			if table, err := tc.load(file); err != nil {
				require.True(t, errors.Is(err, segment.ErrFormat) || errors.Is(err, block.ErrFormat) || errors.Is(err, parquetfile.ErrFormat), "%v", err)
				found++
			} else if got := tableText(table); got != want {
				t.Fatalf("byte %d of %d of %s: another answer without an error", at, len(file), tc.name)
			}
			file[at] ^= 1 << (at % 8)
		}
		t.Logf("%d of %d changes of %s are errors", found, len(file), tc.name)
	}
}
