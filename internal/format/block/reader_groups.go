package block

import (
	"errors"
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/parquetfile"
)

// errEnd reports that there are no more row groups.
var errEnd = errors.New("no more row groups")

// column names a flat column that a cursor reads.
type column struct {
	name string
	typ  format.Type
}

// groups iterates over the row groups of the files of one kind. It reads some columns, with those
// that lie between them, in one read of the file per row group.
type groups struct {
	r       *Reader
	files   []*File // the current one first
	columns []column
	whole   bool // read the other columns, too

	open   *openFile // files[0], or nil
	leaves []int     // by column
	read   []int     // leaves that are read
	at     int       // row group of files[0] that comes next
	group  parquetfile.GroupReader
	chunk  parquetfile.ChunkReader
}

// next returns the row group that comes next, or errEnd.
func (g *groups) next() (*RowGroup, error) {
	for len(g.files) > 0 {
		if g.at < len(g.files[0].RowGroups) {
			return &g.files[0].RowGroups[g.at], nil
		}
		g.files, g.open, g.at = g.files[1:], nil, 0
	}
	return nil, errEnd
}

// load reads the next row group; next must have returned it. int64s, doubles and
// blobs then read its columns.
func (g *groups) load() error {
	f := g.files[0]
	if g.open == nil {
		var err error
		if g.open, err = g.r.open(f); err != nil {
			return err
		}
		// Look the columns up in the file.
		g.leaves = g.leaves[:0]
		for _, c := range g.columns {
			leaf := g.open.layout.Column(c.name)
			if leaf < 0 || g.open.layout.Leaves[leaf].Type != c.typ || g.open.layout.Leaves[leaf].Nested {
				return f.fail(fmt.Errorf("%w: no column %s of type %v", ErrFormat, c.name, c.typ))
			}
			g.leaves = append(g.leaves, leaf)
		}
		g.read = g.leaves
		if g.whole {
			g.read = make([]int, len(g.open.layout.Leaves))
			for leaf := range g.read {
				g.read[leaf] = leaf
			}
		}
	}
	group, err := g.open.layout.Read(g.at, g.open.in, g.group.Buffer(), g.read)
	if err != nil {
		return f.fail(err)
	}
	g.group = group
	g.at++
	return nil
}

func (g *groups) failed(i int, err error) error {
	if err != nil {
		return g.open.fail(fmt.Errorf("column %s: %w", g.columns[i].name, err))
	}
	return nil
}

// int64s appends column i of the loaded row group.
func (g *groups) int64s(dst []int64, i int) ([]int64, error) {
	dst, err := g.group.Int64s(g.leaves[i], &g.chunk, dst)
	return dst, g.failed(i, err)
}

// doubles appends column i of the loaded row group.
func (g *groups) doubles(dst []float64, i int) ([]float64, error) {
	dst, err := g.group.Doubles(g.leaves[i], &g.chunk, dst)
	return dst, g.failed(i, err)
}

// blobs appends column i of the loaded row group. The strings own their memory.
func (g *groups) blobs(dst []string, i int) ([]string, error) {
	err := g.group.Pages(g.leaves[i], &g.chunk, func(p *parquetfile.DataPage) (err error) {
		p.Values = slices.Clone(p.Values)
		dst, err = p.Strings(dst, p.Entries)
		return err
	})
	return dst, g.failed(i, err)
}
