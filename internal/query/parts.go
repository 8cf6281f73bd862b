package query

import (
	"slices"
	"sort"
	"strings"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/read"
)

// kind is a family of a block's files whose rows are counted together.
type kind struct {
	prefix  string // of the files' names
	columns []int  // leaf columns that are read, for statistics
}

// Leaf columns: metric, series_id, ts, and v_int, v_div, st of samples; count, sum, h of histograms.
var (
	floatFiles = kind{"samples-", []int{2, 3, 4, 5}}
	histFiles  = kind{"histograms-", []int{2, 5}}
)

// of says whether a file is of this kind.
func (k kind) of(f *block.File) bool { return strings.HasPrefix(f.Name, k.prefix) }

// part is a range of rows of one file that a statement reads: those of one or more row groups, cut to the wanted ones.
type part struct {
	object   int    // position in the source
	key      string // of the file
	first    int64  // the file's first row, counted over all files of its kind
	from, to int64  // rows of the file, to exclusive
	whole    bool   // the part is all of the file
	inside   bool   // all its times are in the wanted range
	st       bool   // the file has start timestamps
	runs     []run  // what is wanted, by place; rows in between are not
}

// maxParts is the number of parts of one file; with more, neighbours are read as one. A part costs DuckDB about as long as
// some ten thousand rows.
const maxParts = 16

// partsOf plans the read of runs (by place) from a block's files of a kind, within [mint, maxt] (ms). Row groups without a wanted row are left out.
func partsOf(object int, o *located, k kind, runs []run, mint, maxt int64) (parts []part, took read.Totals) {
	if len(runs) == 0 {
		return nil, took
	}
	for i := range o.footer.block.Files {
		f := &o.footer.block.Files[i]
		if !k.of(f) || len(f.RowGroups) == 0 {
			continue
		}
		base := part{object: object, key: o.block.File(f.Name), first: f.RowGroups[0].FirstRow, st: o.footer.block.HasST}
		ps := partsOfFile(base, f, runs, mint, maxt)
		for j := range f.RowGroups {
			g := &f.RowGroups[j]
			n := k.bytes(g)
			took.RowGroups.Considered++
			took.Bytes.Considered += n
			if slices.ContainsFunc(ps, func(p part) bool { return g.FirstRow-p.first < p.to && g.FirstRow-p.first+g.Rows > p.from }) {
				took.RowGroups.Read++
				took.Bytes.Read += n
			}
		}
		parts = append(parts, ps...)
	}
	return parts, took
}

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

// partsOfFile returns the parts of one file, in order. base has what they have in common.
func partsOfFile(base part, f *block.File, runs []run, mint, maxt int64) []part {
	var out []part
	next := int64(-1) // the row group that would continue the last part begins here
	for i := range f.RowGroups {
		g := &f.RowGroups[i]
		wanted := runsIn(runs, g.FirstRow, g.FirstRow+g.Rows)
		if len(wanted) == 0 || g.MinT > maxt || g.MaxT < mint {
			continue
		}
		from := max(g.FirstRow, wanted[0].start) - base.first
		to := min(g.FirstRow+g.Rows, wanted[len(wanted)-1].end()) - base.first
		inside := g.MinT >= mint && g.MaxT <= maxt
		if next == g.FirstRow {
			last := &out[len(out)-1]
			last.to, last.inside = to, last.inside && inside
		} else {
			p := base
			p.from, p.to, p.inside = from, to, inside
			out = append(out, p)
		}
		next = g.FirstRow + g.Rows
	}
	out = joined(out)
	for i := range out {
		p := &out[i]
		p.runs = runsIn(runs, p.first+p.from, p.first+p.to)
		p.whole = p.from == 0 && p.to == f.Rows
	}
	return out
}

// joined joins neighbours until there are at most maxParts. The row groups in between may be outside of the time range.
func joined(parts []part) []part {
	if len(parts) <= maxParts {
		return parts
	}
	size := (len(parts) + maxParts - 1) / maxParts
	var out []part
	for ps := range slices.Chunk(parts, size) {
		p := ps[0]
		p.to, p.inside = ps[len(ps)-1].to, false
		out = append(out, p)
	}
	return out
}

// runsIn returns the runs with rows in [from, to).
func runsIn(runs []run, from, to int64) []run {
	lo := sort.Search(len(runs), func(i int) bool { return runs[i].end() > from })
	hi := lo + sort.Search(len(runs)-lo, func(i int) bool { return runs[lo+i].start >= to })
	return runs[lo:hi]
}
