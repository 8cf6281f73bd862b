package block

import (
	"slices"
	"strings"
)

// Kind is a family of a block's files whose rows are counted together.
type Kind struct {
	prefix string // of the files' names
	leaves []int  // the columns that a read of rows needs
}

// The kinds of files whose rows belong to series.
var (
	FloatFiles    = Kind{samplesPrefix, []int{leafTS, leafInt, leafDiv, leafST}}
	HistFiles     = Kind{histogramsPrefix, []int{leafTS, leafHist}}
	ExemplarFiles = Kind{ExemplarsFile, []int{leafTS, leafExValue, leafExLabels}}
)

// Has reports whether f is of this kind.
func (k Kind) Has(f *File) bool { return strings.HasPrefix(f.Name, k.prefix) }

// Times is k for reads that need the times alone.
func (k Kind) Times() Kind { return Kind{k.prefix, k.leaves[:1]} }

// Bytes returns the size of all that AppendSpans may append of g.
func (k Kind) Bytes(g *RowGroup) (n int64) {
	for _, c := range k.leaves {
		if g.stores(c) {
			n += g.Columns[c][1]
		}
	}
	return n
}

// AppendSpans appends where the bytes lie ([offset, length]) that a read of rows of g needs: the
// chunk of the times, then those of other columns, or their pages with these rows. The rows are as
// those of FloatReader.Select.
func (k Kind) AppendSpans(dst [][2]int64, g *RowGroup, rows []Rows) [][2]int64 {
	for _, c := range k.leaves {
		switch {
		case !g.stores(c):
		case c == leafInt && len(g.Pages) > 0:
			dst = appendPages(dst, g, rows)
		default:
			dst = append(dst, g.Columns[c])
		}
	}
	return dst
}

// File returns the file of a name, nil if the block has none.
func (m *Meta) File(name string) *File {
	i := slices.IndexFunc(m.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Files[i]
}
