package explain

import (
	"cmp"
	"slices"
	"sort"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/segment"
)

// leafScan is what equivalent SQL reads of one selector: the rows of some series in the objects of
// a resolution.
type leafScan struct {
	res        *lookup.Resolution
	mint, maxt int64 // ms, inclusive: samples that matter
	blocks     []blockRows
	segments   []segmentRows
	ranked     bool // objects overlap in time, so that a sample's rank matters
}

// blockRows are the wanted rows of a block's sample files.
type blockRows struct {
	object int
	rank   int
	runs   []rowRun // ascending, apart
	ids    []uint64 // of the wanted series; in one block, ids are distinct
	gone   []goneRows
	files  []fileRows
}

// rowRun is the rows [from, to) of a block's sample files, counted over all of them.
type rowRun struct{ from, to int64 }

// fileRows are the row groups of one file that have wanted rows.
type fileRows struct {
	key    string
	file   *block.File
	groups []int  // positions in file.RowGroups, ascending
	bytes  int64  // that are read of them
	path   string // in the statement
}

// segmentRows are the wanted rows of a segment, one per series.
type segmentRows struct {
	object int
	rows   []int64
	gone   []goneRows
}

// goneRows are deleted samples: those of some series at times of [mint, maxt] (ms).
type goneRows struct {
	mint, maxt int64
	keys       []uint64 // of a block: ids; of a segment: rows
}

// newLeafScan plans the read of the series at the wanted positions of a resolution.
func newLeafScan(res *lookup.Resolution, wanted []int, mint, maxt int64) *leafScan {
	s := &leafScan{res: res, mint: mint, maxt: maxt}
	blocks, segments := map[int]*blockRows{}, map[int]*segmentRows{}
	for _, w := range wanted {
		series := &res.Series[w]
		for _, p := range series.At {
			object := int(p.Object)
			first, n := res.Floats(p)
			if f := res.Objects[object].Footer; n == 0 || f.MinT > maxt || f.MaxT < mint {
				continue
			}
			if first < 0 {
				of := entry(segments, object)
				of.rows = append(of.rows, int64(p.Row))
				of.gone = s.delete(of.gone, object, series, uint64(p.Row))
				continue
			}
			of := entry(blocks, object)
			of.runs = append(of.runs, rowRun{first, first + n})
			of.ids = append(of.ids, series.ID)
			of.gone = s.delete(of.gone, object, series, series.ID)
		}
	}
	for object := range res.Objects {
		if b := blocks[object]; b != nil {
			b.object, b.rank, b.runs = object, object, adjoined(b.runs)
			b.files = s.files(b)
			s.blocks = append(s.blocks, *b)
		}
		if g := segments[object]; g != nil {
			g.object = object
			s.segments = append(s.segments, *g)
		}
	}
	s.rank()
	return s
}

func entry[T any](m map[int]*T, k int) *T {
	if m[k] == nil {
		m[k] = new(T)
	}
	return m[k]
}

// delete notes which samples in [s.mint, s.maxt] of a series in an object are deleted.
func (s *leafScan) delete(gone []goneRows, object int, series *lookup.ResolvedSeries, key uint64) []goneRows {
	for t := range s.res.Deletions.In(object, series.Tombstones) {
		if t.Mint > s.maxt || t.Maxt < s.mint {
			continue
		}
		i := slices.IndexFunc(gone, func(g goneRows) bool { return g.mint == t.Mint && g.maxt == t.Maxt })
		if i < 0 {
			i = len(gone)
			gone = append(gone, goneRows{mint: t.Mint, maxt: t.Maxt})
		}
		if n := len(gone[i].keys); n == 0 || gone[i].keys[n-1] != key {
			gone[i].keys = append(gone[i].keys, key)
		}
	}
	return gone
}

// adjoined orders runs, which do not overlap, and joins those that follow one another.
func adjoined(runs []rowRun) []rowRun {
	slices.SortFunc(runs, func(a, b rowRun) int { return cmp.Compare(a.from, b.from) })
	out := runs[:0]
	for _, r := range runs {
		if n := len(out); n > 0 && out[n-1].to == r.from {
			out[n-1].to = r.to
			continue
		}
		out = append(out, r)
	}
	return out
}

// files returns the row groups of a block that have wanted rows at wanted times.
func (s *leafScan) files(b *blockRows) []fileRows {
	var out []fileRows
	o := &s.res.Objects[b.object]
	for i := range o.Footer.Meta.Files {
		f := &o.Footer.Meta.Files[i]
		if !block.FloatFiles.Has(f) {
			continue
		}
		rows := fileRows{key: o.Block.File(f.Name), file: f}
		for j := range f.RowGroups {
			g := &f.RowGroups[j]
			runs := b.within(g)
			if g.MinT > s.maxt || g.MaxT < s.mint || len(runs) == 0 {
				continue
			}
			wanted := make([]block.Rows, len(runs))
			for k, r := range runs {
				from, to := max(r.from, g.FirstRow), min(r.to, g.FirstRow+g.Rows)
				wanted[k] = block.Rows{From: from, N: to - from}
			}
			rows.groups, rows.bytes = append(rows.groups, j), rows.bytes+block.FloatFiles.RowBytes(g, wanted)
		}
		if len(rows.groups) > 0 {
			out = append(out, rows)
		}
	}
	return out
}

// within returns the wanted runs with rows in a row group.
func (b *blockRows) within(g *block.RowGroup) []rowRun {
	lo := sort.Search(len(b.runs), func(i int) bool { return b.runs[i].to > g.FirstRow })
	hi := lo + sort.Search(len(b.runs)-lo, func(i int) bool { return b.runs[lo+i].from >= g.FirstRow+g.Rows })
	return b.runs[lo:hi]
}

// rank sets ranked if objects overlap in time.
func (s *leafScan) rank() {
	var objects []int
	for i := range s.blocks {
		objects = append(objects, s.blocks[i].object)
	}
	for i := range s.segments {
		objects = append(objects, s.segments[i].object)
	}
	info := func(object int) *segment.Info { return &s.res.Objects[object].Footer.Info }
	slices.SortFunc(objects, func(a, b int) int { return cmp.Compare(info(a).MinT, info(b).MinT) })
	for i := 1; i < len(objects); i++ {
		if info(objects[i]).MinT <= info(objects[i-1]).MaxT {
			s.ranked = true
			return
		}
	}
}
