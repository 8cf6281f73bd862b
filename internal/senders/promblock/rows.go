package promblock

import (
	"slices"
	"unsafe"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/tsdb/tombstones"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/live"
)

// Rows are the series that Scan found, with the places of their chunks. A Rows belongs to one
// goroutine.
type Rows struct {
	source   source
	from, to int64 // [from, to), ms
	rows     []row
	places   []place // of row 0, then of row 1, …
	more     map[int][]part
	gone     map[int]tombstones.Intervals // by row
	byRef    []uint32                     // by reference: its row plus one; of Scan

	chunk  chunks.Meta
	floats chunkenc.Iterator
	others chunkenc.Iterator
}

// source is where the chunks of rows are.
type source interface {
	// load reads a chunk, and release takes it back when its samples are read.
	load(chunks.Meta) (chunkenc.Chunk, error)
	release(chunkenc.Chunk) error
	// corrupt describes a chunk of a series that cannot be read, and reports whether it is left
	// out.
	corrupt(series storage.SeriesRef, chunk chunks.ChunkRef, err error) (c *CorruptError, skip bool)
}

// row is a series with places [at, at+n).
type row struct {
	part
	ref series.Ref
}

// part is a series of the index. Label sets become equal where external labels replace others: then
// a row has several parts.
type part struct {
	at, n  uint32
	source storage.SeriesRef
}

// place is where a chunk is, and its times, inclusive.
type place struct {
	ref        chunks.ChunkRef
	minT, maxT int64
}

// Memory of a row and of a place, with the room that slices have to grow.
const (
	rowBytes   = int64(unsafe.Sizeof(row{})+unsafe.Sizeof(uint32(0))) * 5 / 4
	placeBytes = int64(unsafe.Sizeof(place{})) * 5 / 4
)

// add adds a series, or chunks to the row that has its reference.
func (r *Rows) add(ref series.Ref, source storage.SeriesRef, metas []chunks.Meta, gone tombstones.Intervals) {
	p := part{at: uint32(len(r.places)), n: uint32(len(metas)), source: source}
	for _, m := range metas {
		r.places = append(r.places, place{m.Ref, m.MinTime, m.MaxTime})
	}
	if int(ref) >= len(r.byRef) {
		r.byRef = append(r.byRef, make([]uint32, int(ref)+1-len(r.byRef)+len(r.byRef)/4)...)
	}
	i := int(r.byRef[ref]) - 1
	if i >= 0 {
		if r.more == nil {
			r.more = map[int][]part{}
		}
		r.more[i] = append(r.more[i], p)
	} else {
		i = len(r.rows)
		r.rows = append(r.rows, row{part: p, ref: ref})
		r.byRef[ref] = uint32(len(r.rows))
	}
	if len(gone) > 0 {
		if r.gone == nil {
			r.gone = map[int]tombstones.Intervals{}
		}
		for _, iv := range gone {
			r.gone[i] = r.gone[i].Add(iv)
		}
	}
}

// Len returns the number of series.
func (r *Rows) Len() int { return len(r.rows) }

// Ref returns the reference that Keep returned for the i-th series. Each is there once.
func (r *Rows) Ref(i int) series.Ref { return r.rows[i].ref }

// Read appends the samples of the i-th series, in the order of time and without those that
// tombstones of the block delete, to floats and hists. It returns hists. It leaves floats.ST empty
// if it is empty and no sample has a start timestamp. Errors: CorruptError.
func (r *Rows) Read(i int, floats *live.Run, hists []segment.Hist) ([]segment.Hist, error) {
	at, histsAt := len(floats.TS), len(hists)
	s := &r.rows[i]
	hists, err := r.part(&s.part, floats, hists)
	for _, p := range r.more[i] {
		if err == nil {
			hists, err = r.part(&p, floats, hists)
		}
	}
	if err != nil {
		return hists, err
	}
	if len(floats.ST) > 0 {
		floats.ST = append(floats.ST, make([]int64, len(floats.TS)-len(floats.ST))...)
	}
	ascend(floats, at)
	hists = ascendHists(hists, histsAt)
	if gone := r.gone[i]; len(gone) > 0 {
		floats.Cut(at, gone)
		hists = append(hists[:histsAt], slices.DeleteFunc(hists[histsAt:], func(h segment.Hist) bool { return live.Within(h.T, gone) })...)
	}
	return hists, nil
}

// part appends what is in the chunks of a series of the index.
func (r *Rows) part(p *part, floats *live.Run, hists []segment.Hist) ([]segment.Hist, error) {
	for i := range r.places[p.at : p.at+p.n] {
		before, histsBefore := len(floats.TS), len(hists)
		var err error
		hists, err = r.decode(&r.places[int(p.at)+i], floats, hists)
		if err == nil {
			continue
		}
		if c, skip := r.source.corrupt(p.source, r.places[int(p.at)+i].ref, err); !skip {
			return hists, c
		}
		floats.TS, floats.V, floats.ST = floats.TS[:before], floats.V[:before], floats.ST[:min(before, len(floats.ST))]
		hists = hists[:histsBefore]
	}
	return hists, nil
}
