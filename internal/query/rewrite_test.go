package query_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/parquetfile"
	"github.com/promlake/promlake/internal/format/segment"
)

// truncateIDs rewrites encoded segments so that series_id keeps one bit: nearly all series collide.
func truncateIDs(t *testing.T) func(segment []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	require.NoError(t, err)
	return func(in []byte) []byte {
		l, err := parquetfile.ReadLayout(bytes.NewReader(in), int64(len(in)))
		require.NoError(t, err)
		var out bytes.Buffer
		w := parquetfile.NewWriter(z)
		require.NoError(t, w.Begin(&out, schemaOf(l), "test", 0))
		for i := range l.Groups {
			g := l.InBytes(i, in)
			for leaf := range l.Leaves {
				c := chunkOf(t, &g, leaf)
				if c.Path[0] == segment.ColSeriesID {
					for b := c.Pages[0].Data; len(b) > 0; b = b[8:] {
						binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)&1)
					}
				}
				w.Add(c, nil)
			}
			_, err = w.EndGroup(int(l.Groups[i].Rows))
			require.NoError(t, err)
		}
		var kv []format.KeyValue
		for k, v := range l.KeyValues {
			kv = append(kv, format.KeyValue{Key: k, Value: v})
		}
		require.NoError(t, w.End(kv))
		return out.Bytes()
	}
}

// schemaOf makes the schema of a segment from its leaf columns.
func schemaOf(l *parquetfile.Layout) []format.SchemaElement {
	s := parquetfile.NewSchema("promlake_segment")
	for _, leaf := range l.Leaves {
		top := leaf.Path[0]
		switch {
		case top == segment.ColSeriesID:
			s.Add(parquetfile.Uint64(top))
		case !leaf.Nested:
			s.Add(parquetfile.String(top))
		case top == segment.ColLabels && leaf.Path[2] == "key":
			s.Add(parquetfile.Map(top)...)
		case top == segment.ColLabels:
		case leaf.Type == format.Int64:
			s.Add(parquetfile.List(top, parquetfile.Timestamp("element"))...)
		default:
			s.Add(parquetfile.List(top, parquetfile.Bare("element", leaf.Type))...)
		}
	}
	return s.Elements()
}

// chunkOf reads a column chunk as it may be written again.
func chunkOf(t *testing.T, g *parquetfile.GroupReader, leaf int) parquetfile.Chunk {
	var r parquetfile.ChunkReader
	require.NoError(t, g.Chunk(leaf, &r))
	e := g.Layout.Leaves[leaf]
	c := parquetfile.Chunk{Path: e.Path, Type: e.Type, Dict: r.Dict, DictLen: r.DictLen}
	require.NoError(t, r.Pages(func(p *parquetfile.DataPage) error {
		var data []byte
		if e.Nested {
			for _, levels := range [][]byte{p.Repetition, p.Definition} {
				data = append(binary.LittleEndian.AppendUint32(data, uint32(len(levels))), levels...)
			}
		}
		c.Pages = append(c.Pages, parquetfile.Page{Encoding: p.Encoding, Data: append(data, p.Values...), Values: p.Entries})
		return nil
	}))
	return c
}
