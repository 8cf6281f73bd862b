package block

import (
	"fmt"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Stretch is pages of a column chunk that follow one another: their rows, and their size in bytes.
// One without rows, which comes first, is the chunk's dictionary.
type Stretch [2]int64

// stretchBytes is the least size of a stretch except the last one and the dictionary, in bytes.
// meta.json has about fourteen bytes for each.
const stretchBytes = 8 << 10

// stretchesOf returns the stretches of a chunk, given the sizes of its dictionary and of its pages;
// nil if there is only one.
func stretchesOf(pages []parquetfile.Page, sizes []int64) []Stretch {
	if len(sizes) != len(pages)+1 {
		return nil // the chunk was not written
	}
	var out []Stretch
	if sizes[0] > 0 {
		out = append(out, Stretch{0, sizes[0]})
	}
	dicts := len(out)
	var open Stretch
	for i := range pages {
		open[0], open[1] = open[0]+int64(pages[i].Values), open[1]+sizes[i+1]
		if open[1] >= stretchBytes || i == len(pages)-1 {
			out, open = append(out, open), Stretch{}
		}
	}
	if len(out)-dicts < 2 {
		return nil
	}
	return out
}

// check returns an error if the stretches of g are not its column v_int.
func (g *RowGroup) check() error {
	if len(g.Pages) == 0 {
		return nil
	}
	if leafInt >= len(g.Columns) || g.Rows < 1 {
		return fmt.Errorf("%w: pages in a row group of %d columns and %d rows", ErrFormat, len(g.Columns), g.Rows)
	}
	all, sum := Stretch{g.Rows, g.Columns[leafInt][1]}, Stretch{}
	for i, s := range g.Pages {
		if s[0] < 0 || s[0] == 0 && i > 0 || s[0] > all[0] || s[1] <= 0 || s[1] > all[1] {
			return fmt.Errorf("%w: pages of %d rows and %d bytes", ErrFormat, s[0], s[1])
		}
		if sum[0], sum[1] = sum[0]+s[0], sum[1]+s[1]; sum[0] > all[0] || sum[1] > all[1] {
			break
		}
	}
	if sum != all {
		return fmt.Errorf("%w: pages of %d rows and %d bytes, the column has %d and %d", ErrFormat, sum[0], sum[1], all[0], all[1])
	}
	return nil
}

// place is a stretch of a row group: its number, its first row, and its offset in the file.
type place struct {
	g       *RowGroup
	i       int
	row, at int64
}

// pages returns the dictionary and the first stretch with rows of a row group that has stretches.
func (g *RowGroup) pages() (dict parquetfile.Span, first place) {
	first = place{g, 0, g.FirstRow, g.Columns[leafInt][0]}
	if s := g.Pages[0]; s[0] == 0 {
		dict = parquetfile.Span{Offset: first.at, Length: s[1]}
		first.i, first.at = 1, first.at+s[1]
	}
	return dict, first
}

// of returns the stretch of a row, which is in p or after it.
func (p place) of(row int64) place {
	for p.i < len(p.g.Pages)-1 && row >= p.endRow() {
		p = place{p.g, p.i + 1, p.endRow(), p.end()}
	}
	return p
}

// end is the offset of what follows the stretch, and endRow the row after its last one.
func (p place) end() int64    { return p.at + p.g.Pages[p.i][1] }
func (p place) endRow() int64 { return p.row + p.g.Pages[p.i][0] }

// appendPages appends where the dictionary lies, and the stretches that have rows.
func appendPages(dst [][2]int64, g *RowGroup, rows []Rows) [][2]int64 {
	dict, p := g.pages()
	begin := len(dst)
	if dict.Length > 0 {
		dst = append(dst, [2]int64{dict.Offset, dict.Length})
	}
	for _, r := range rows {
		if r.N == 0 {
			continue
		}
		p = p.of(r.From)
		last := p.of(r.From + r.N - 1)
		if n := len(dst); n > begin && dst[n-1][0]+dst[n-1][1] >= p.at {
			dst[n-1][1] = max(dst[n-1][1], last.end()-dst[n-1][0])
		} else {
			dst = append(dst, [2]int64{p.at, last.end() - p.at})
		}
		p = last
	}
	return dst
}

// paged moves a reader of v_int to the pages of rows.
type paged struct {
	place
	words *parquetfile.WordReader
	upto  int64 // the reader may read up to this row
}

// seek makes the reader ready for the first of some rows, at least one, that follow all earlier ones.
// It returns the row at which the reader is, given that before. Stretches of the other rows that
// follow on those of the first are read from the file together with them.
func (p *paged) seek(at int64, rows []Rows) int64 {
	p.place = p.of(rows[0].From)
	last := p.of(rows[0].From + rows[0].N - 1)
	end := last
	if last.endRow() > p.upto {
		end = last.adjacent(rows[1:])
	}
	switch {
	case p.row >= p.upto:
		p.words.Jump(p.at, end.end(), end.endRow()-p.row)
		at = p.row
	case end.endRow() > p.upto:
		p.words.Extend(end.end(), end.endRow()-p.upto)
	}
	p.upto, p.place = max(p.upto, end.endRow()), last
	return at
}

// adjacent returns the last stretch of rows that follow p, up to where a stretch has none of them.
func (p place) adjacent(rows []Rows) place {
	for _, r := range rows {
		if r.N == 0 {
			continue
		}
		next := p.of(r.From)
		if next.i > p.i+1 {
			break
		}
		p = next.of(r.From + r.N - 1)
	}
	return p
}
