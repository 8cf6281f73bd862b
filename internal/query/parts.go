package query

import (
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/read"
)

// kind is a family of a block's files whose rows are counted together.
type kind struct {
	prefix  string // of the files' names
	columns []int  // leaf columns that are read
}

// Leaf columns: metric, series_id, ts, and v_int, v_div, st of samples; count, sum, h of histograms; value, labels of exemplars.
var (
	floatFiles    = kind{"samples-", []int{2, 3, 4, 5}}
	histFiles     = kind{"histograms-", []int{2, 5}}
	exemplarFiles = kind{block.ExemplarsFile, []int{2, 3, 4}}
)

// of says whether a file is of this kind.
func (k kind) of(f *block.File) bool { return strings.HasPrefix(f.Name, k.prefix) }

// bytes is the size of a row group's columns that are read.
func (k kind) bytes(g *block.RowGroup) int64 {
	var n int64
	for _, c := range k.columns {
		if c < len(g.Columns) {
			n += g.Columns[c][1]
		}
	}
	return n
}

// seriesTotals says what a look at the series tables of objects takes.
func seriesTotals(objs []located) (t read.Totals) {
	for i := range objs {
		n := objs[i].size
		if m := objs[i].footer.block; m != nil {
			t.Blocks++
			if f := fileOf(m, block.SeriesFile); f != nil {
				n = f.Bytes
			}
		} else {
			t.Segments++
		}
		t.Bytes.Considered, t.Bytes.Read = t.Bytes.Considered+n, t.Bytes.Read+n
	}
	return t
}

// fileOf returns a block's file by name, nil if there is none.
func fileOf(m *block.Meta, name string) *block.File {
	i := slices.IndexFunc(m.Files, func(f block.File) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Files[i]
}
