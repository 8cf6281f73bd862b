package block

import "slices"

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
