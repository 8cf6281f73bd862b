package inventory

import (
	"cmp"
	"slices"

	"github.com/promlake/promlake/internal/format/block"
)

// Columns is what the columns of some blocks take.
type Columns struct {
	Blocks  int      `json:"blocks"` // that were read
	Samples int64    `json:"samples"`
	Bytes   int64    `json:"bytes"`
	Rows    []Column `json:"rows"` // the largest first
}

// Column is the size of a column of one kind of files, as it is stored. Without a name, it is what
// the files have beside named columns: footers, and whole series tables and rollups.
type Column struct {
	File           string  `json:"file"`
	Name           string  `json:"column,omitempty"`
	Bytes          int64   `json:"bytes"`
	BytesPerSample float64 `json:"bytesPerSample"` // of all samples of the blocks; 0 if there are none
}

// ColumnsOf sums the columns of blocks.
func ColumnsOf(metas []*block.Meta) *Columns {
	type id struct{ file, name string }
	out, sums := &Columns{Blocks: len(metas), Rows: []Column{}}, map[id]int64{}
	for _, m := range metas {
		out.Samples += m.Floats + m.Hists
		for _, c := range m.Columns() {
			sums[id{c.File, c.Column}] += c.Bytes
			out.Bytes += c.Bytes
		}
	}
	for k, n := range sums {
		c := Column{File: k.file, Name: k.name, Bytes: n}
		if out.Samples > 0 {
			c.BytesPerSample = float64(n) / float64(out.Samples)
		}
		out.Rows = append(out.Rows, c)
	}
	slices.SortFunc(out.Rows, func(a, b Column) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Name, b.Name))
	})
	return out
}
