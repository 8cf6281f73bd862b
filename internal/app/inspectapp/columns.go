package inspectapp

import (
	"cmp"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/format/block"
)

// footer is the pseudo-column of the bytes of a Parquet file outside of its column chunks.
const footer = "footer"

// rollup is the kind of the files that hold downsamples.
const rollup = "rollup"

// leaves lists the columns of the files that are reported by column, in the files' order.
var leaves = map[string][]string{
	"samples":    {"metric", "series_id", "ts", "v_int", "v_div", "st"},
	"histograms": {"metric", "series_id", "ts", "count", "sum", "h"},
}

// kinds are the kinds of a block's files in the order of the report.
var kinds = []string{"samples", "histograms", "series", "exemplars", "metadata", rollup, "meta"}

// kindOf returns the kind of a block's file: the part of its name before the number or the
// extension.
func kindOf(name string) string {
	kind, _, _ := strings.Cut(name, ".")
	kind, _, _ = strings.Cut(kind, "-")
	return kind
}

// columnSizes adds up the bytes of columns over blocks.
type columnSizes map[Column]int64 // by Column without Bytes

// add counts the files of a block, and returns the bytes of its rollups. metaBytes is the size of
// its meta.json, which does not name itself.
func (sizes columnSizes) add(m *block.Meta, metaBytes int64) (rollups int64) {
	sizes[Column{File: "meta"}] += metaBytes
	before := sizes[Column{File: rollup}]
	for i := range m.Files {
		sizes.addFile(&m.Files[i])
	}
	return sizes[Column{File: rollup}] - before
}

func (sizes columnSizes) addFile(f *block.File) {
	kind, rest := kindOf(f.Name), f.Bytes
	names, ok := leaves[kind]
	if !ok {
		sizes[Column{File: kind}] += rest
		return
	}
	for _, g := range f.RowGroups {
		columns := g.Stored()
		for i, chunk := range columns[:min(len(columns), len(names))] {
			sizes[Column{File: kind, Column: names[i]}] += chunk[1]
			rest -= chunk[1]
		}
	}
	sizes[Column{File: kind, Column: footer}] += rest
}

// sorted lists the columns by file and by their order in it.
func (sizes columnSizes) sorted() []Column {
	out := make([]Column, 0, len(sizes))
	for c, n := range sizes {
		c.Bytes = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Column) int {
		return cmp.Or(
			cmp.Compare(place(kinds, a.File), place(kinds, b.File)),
			cmp.Compare(a.File, b.File),
			cmp.Compare(place(leaves[a.File], a.Column), place(leaves[b.File], b.Column)),
		)
	})
	return out
}

// place is the index of name, or one beyond the last.
func place(names []string, name string) int {
	if i := slices.Index(names, name); i >= 0 {
		return i
	}
	return len(names)
}
