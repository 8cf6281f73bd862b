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

// samplesAliases is the number of columns of samples files that share the bytes of others.
const samplesAliases = 2

// Stored returns the columns of g that are not aliases. Aliases come last and have the bytes of
// others.
func (g *RowGroup) Stored() []Chunk {
	n := len(g.Columns)
	for n > 0 && slices.Contains(g.Columns[:n-1], g.Columns[n-1]) {
		n--
	}
	return g.Columns[:n]
}

// stores reports whether g has the column at a position, and it is no alias.
func (g *RowGroup) stores(c int) bool {
	return c < len(g.Columns) && !slices.Contains(g.Columns[:c], g.Columns[c])
}

// Aliased reports whether the block's series and samples have the aliases that readers of Iceberg
// tables need: blocks that were written earlier do not.
func (m *Meta) Aliased() bool {
	for i := range m.Files {
		f := &m.Files[i]
		want := 0
		switch f.kind() {
		case "samples":
			want = leafST + samplesAliases
			if m.HasST {
				want++
			}
		case "series":
			want = seriesKeys + len(m.LabelColumns) + len(seriesFigures) + len(seriesAliases)
			if len(m.MapNames) > 0 {
				want += 2 // the keys and the values of the MAP
			}
		}
		for g := range f.RowGroups {
			if want > 0 && len(f.RowGroups[g].Columns) != want {
				return false
			}
		}
	}
	return true
}
