package segment

import (
	"encoding/binary"
	"slices"

	"github.com/parquet-go/parquet-go/format"
)

// labelColumns writes what names the series of the rows [row, end): metric, series_id, a column per label, the labels MAP.
func (w *Writer) labelColumns(b *Batch, shape *shape, row, end int) error {
	w.metric.reset()
	for _, o := range w.ord {
		w.columns[o].reset()
	}
	v := b.View
	ids := make([]uint64, 0, end-row)
	for i, r := range b.Rows[row:end] {
		w.metric.set(i, v.Metric(r), v.Metrics)
		ids = append(ids, v.ID(r))
		for _, p := range v.Pairs(r) {
			if w.kind[p.Name] == inColumn {
				w.columns[p.Name].set(i, p.Value, v.Values[p.Name])
			}
		}
	}
	if err := w.file.add(w.metric.chunk(ColMetric, &w.s)); err != nil {
		return err
	}
	if err := w.file.add(idChunk(ids, &w.s)); err != nil {
		return err
	}
	for i, o := range w.ord {
		c := &w.columns[o]
		c.fill(end - row)
		if err := w.file.add(c.chunk(LabelPrefix+shape.labels[i], &w.s)); err != nil {
			return err
		}
	}
	if len(shape.mapNames) == 0 {
		return nil
	}
	return w.mapColumns(b, row, end)
}

// mapColumns writes the labels MAP.
func (w *Writer) mapColumns(b *Batch, row, end int) error {
	v := b.View
	var names, values [][]byte
	counts := w.counts[:0]
	for _, r := range b.Rows[row:end] {
		n := 0
		for _, p := range v.Pairs(r) {
			if w.kind[p.Name] == inLabelsMap {
				names, values = append(names, []byte(v.Names[p.Name])), append(values, []byte(v.Values[p.Name][p.Value]))
				n++
			}
		}
		counts = append(counts, n)
	}
	w.counts = counts
	w.lists.build(&w.s, counts)
	if err := w.file.add(w.lists.binaries([]string{ColLabels, "key_value", "key"}, &w.s, names)); err != nil {
		return err
	}
	return w.file.add(w.lists.binaries([]string{ColLabels, "key_value", "value"}, &w.s, values))
}

// idChunk is the series_id column.
func idChunk(ids []uint64, s *scratch) chunk {
	s.data = s.data[:0]
	for _, id := range ids {
		s.data = binary.LittleEndian.AppendUint64(s.data, id)
	}
	lo, hi := slices.Min(ids), slices.Max(ids)
	return chunk{
		path: []string{ColSeriesID}, typ: format.Int64, encoding: format.Plain, data: s.data, values: len(ids),
		min: binary.LittleEndian.AppendUint64(nil, lo), max: binary.LittleEndian.AppendUint64(nil, hi),
	}
}
