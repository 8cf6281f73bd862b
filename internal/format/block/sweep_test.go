package block_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/checksumtest"
)

// masks returns the changes of a sweep: one bit of each byte, and in small files also all bits.
func masks(file []byte) func(at int) []byte {
	if len(file) > 2000 {
		return checksumtest.OneBit
	}
	return checksumtest.OneAndAllBits
}

func loadGolden(t *testing.T, dir string) *memFiles {
	t.Helper()
	files := newMemFiles(t)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		files.closed[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
	}
	return files
}

func floatText(run *block.FloatRun) string {
	var out []byte
	for i, v := range run.V {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
		out = binary.LittleEndian.AppendUint64(out, uint64(run.TS[i]))
	}
	for _, st := range run.ST {
		out = binary.LittleEndian.AppendUint64(out, uint64(st))
	}
	return string(out)
}

// readInOrder writes down what a Reader and its cursors read, as compaction does: all of the block
// but rollups.
func readInOrder(files *memFiles) (string, error) {
	r, err := block.Open(files)
	if err != nil {
		return "", err
	}
	table := series.NewTable(1)
	rows, err := r.Series(table, nil)
	if err != nil {
		return "", err
	}
	meta, err := r.Metadata()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%+v %+v\n", r.Meta(), meta)
	v := table.View()
	for _, row := range rows {
		fmt.Fprintf(&out, "%+v %s\n", row, labelsAt(&v, row.Ref))
	}
	var run block.FloatRun
	if err := r.Floats().Next(r.Meta().Floats, &run); err != nil {
		return "", err
	}
	out.WriteString(floatText(&run))
	hists, err := r.Hists().Next(r.Meta().Hists, nil)
	if err != nil {
		return "", err
	}
	for _, h := range hists {
		enc, err := segment.EncodeHist(h)
		fmt.Fprintln(&out, enc, err)
	}
	exemplars, err := r.Exemplars().Next(r.Meta().Exemplars, nil)
	for _, e := range exemplars {
		fmt.Fprintln(&out, e.Labels, e.Ts, math.Float64bits(e.Value))
	}
	return out.String(), err
}

// readRows writes down what the readers of rows read, as queries do: with nothing of the files but
// the row groups' entries in meta.json.
func readRows(files *memFiles) (string, error) {
	m, err := block.ReadMeta(files.closed[block.MetaFile])
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for i := range m.Files {
		f := &m.Files[i]
		in := bytes.NewReader(files.closed[f.Name])
		for j := range f.RowGroups {
			g := &f.RowGroups[j]
			if err := readGroupRows(&out, &m, f.Name, in, g, []block.Rows{{From: g.FirstRow, N: g.Rows}}); err != nil {
				return "", err
			}
		}
	}
	return out.String(), nil
}

func readGroupRows(out *strings.Builder, m *block.Meta, name string, in *bytes.Reader, g *block.RowGroup, rows []block.Rows) error {
	switch kind, _, _ := strings.Cut(name, "-"); kind {
	case "samples":
		var fr block.FloatReader
		var run block.FloatRun
		if _, err := fr.Select(in, g, m.HasST, rows, math.MinInt64, math.MaxInt64); err != nil {
			return err
		}
		if err := fr.Read(&run); err != nil {
			return err
		}
		out.WriteString(floatText(&run))
	case "histograms":
		var hr block.HistReader
		if _, err := hr.Select(in, g, rows, math.MinInt64, math.MaxInt64); err != nil {
			return err
		}
		return hr.Read(func(i int, t int64, blob string) error {
			fmt.Fprintf(out, "%d %d %q\n", i, t, blob)
			return nil
		})
	case block.ExemplarsFile:
		var er block.ExemplarReader
		if _, err := er.Select(in, g, rows, math.MinInt64, math.MaxInt64); err != nil {
			return err
		}
		return er.Read(func(i int, t int64, v float64, labels string) error {
			fmt.Fprintf(out, "%d %d %x %q\n", i, t, math.Float64bits(v), labels)
			return nil
		})
	}
	return nil
}

var blockReaders = map[string]func(*memFiles) (string, error){"in order": readInOrder, "rows": readRows}

// TestEveryByteIsChecked changes every byte of every file of the golden block: each reader reports
// an error, or reads the same as before.
func TestEveryByteIsChecked(t *testing.T) {
	files := loadGolden(t, goldenBlock)
	for reader, read := range blockReaders {
		for _, name := range files.names() {
			if reader == "rows" && (name == block.SeriesFile || name == block.MetadataFile) {
				continue // not read by rows
			}
			file := files.closed[name]
			checksumtest.Sweep(t, reader+" of "+name, file, masks(file), func() (string, error) { return read(files) }, block.ErrFormat, parquetfile.ErrFormat)
		}
	}
}

// TestVerifyFindsEveryChange: Verify checks every byte of a file, also those that no reader needs.
func TestVerifyFindsEveryChange(t *testing.T) {
	files := loadGolden(t, goldenBlock)
	for name, file := range files.closed {
		if name == block.MetaFile {
			continue
		}
		sealed, err := parquetfile.Verify(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		require.True(t, sealed)
		changed := bytes.Clone(file)
		for at := range file {
			for _, mask := range masks(file)(at) {
				changed[at] = file[at] ^ mask
				if _, err := parquetfile.Verify(bytes.NewReader(changed), int64(len(changed))); err == nil {
					t.Fatalf("byte %d of %d of %s, mask %#x: no error", at, len(file), name, mask)
				}
			}
			changed[at] = file[at]
		}
	}
}

// oldBlock is the golden block of version 1.
const oldBlock = "testdata/block-v1"

// TestVersion1 reads a block of version 1.
func TestVersion1(t *testing.T) {
	old, err := readRows(loadGolden(t, oldBlock))
	require.NoError(t, err)
	now, err := readRows(loadGolden(t, goldenBlock))
	require.NoError(t, err)
	require.Equal(t, now, old)
	require.Equal(t, expect(t, everything()), read(t, loadGolden(t, oldBlock)))
}

// TestWithoutChecksums reads a block that was written before its bytes had checksums.
func TestWithoutChecksums(t *testing.T) {
	old, err := readRows(loadGolden(t, oldBlock+"-unsealed"))
	require.NoError(t, err)
	now, err := readRows(loadGolden(t, goldenBlock))
	require.NoError(t, err)
	require.Equal(t, now, old)
	files := loadGolden(t, oldBlock+"-unsealed")
	require.NotContains(t, string(files.closed[block.MetaFile]), "crc32c")
	require.Equal(t, expect(t, everything()), read(t, files))
	_, err = readInOrder(files)
	require.NoError(t, err)
	sealed, err := parquetfile.Verify(bytes.NewReader(files.closed[block.SeriesFile]), int64(len(files.closed[block.SeriesFile])))
	require.NoError(t, err)
	require.False(t, sealed)
}
