package segment_test

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// TestDecodeSomeOfMovedIdentifiers: the hash of a label set decides whether it is kept, also if the
// stored identifier is above it and on the other side of a border.
func TestDecodeSomeOfMovedIdentifiers(t *testing.T) {
	table := series.NewTable(1)
	var rows []series.Ref
	for _, v := range []string{"a", "b", "c"} {
		ref, err := table.Intern([]series.Label{{Name: "__name__", Value: "m"}, {Name: "x", Value: v}})
		require.NoError(t, err)
		rows = append(rows, ref)
	}
	view := table.View()
	const moved = 10
	var stored []uint64
	for i, r := range rows {
		stored = append(stored, view.ID(r)+uint64(i))
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	var out bytes.Buffer
	var columns segment.SeriesColumns
	columns.Plan(&view, rows)
	schema := parquetfile.NewSchema("test")
	columns.Schema(schema)
	w := parquetfile.NewWriter(z)
	require.NoError(t, w.Begin(&out, schema.Elements(), "test", 0))
	columns.Write(w, &parquetfile.Scratch{}, &view, rows, stored)
	_, err = w.EndGroup(len(rows))
	require.NoError(t, err)
	require.NoError(t, w.End(nil))

	l, err := parquetfile.ReadLayout(bytes.NewReader(out.Bytes()), int64(out.Len()))
	require.NoError(t, err)
	for i := range rows {
		for name, border := range map[string]uint64{"of the hash": view.ID(rows[i]), "of the stored identifier": stored[i]} {
			for _, keep := range []func(id uint64) bool{
				func(id uint64) bool { return id < border },
				func(id uint64) bool { return id >= border },
			} {
				into := series.NewTable(2)
				d := segment.NewSeriesDecoder(into, moved, keep)
				g := l.InBytes(0, out.Bytes())
				refs, _, err := d.Group(&g)
				require.NoError(t, err)
				got := into.View()
				for j, r := range rows {
					require.Equal(t, keep(view.ID(r)), refs[j] != series.None, "border %s %d, row %d", name, i, j)
					if refs[j] != series.None {
						require.Equal(t, view.ID(r), got.ID(refs[j]))
					}
				}
			}
		}
	}
}
