// Package lookup finds the series that match a selector, and their rows in segments and blocks, on
// series tables in memory. It reads no samples.
package lookup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"unique"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/recent"
)

// Tables finds series in the series tables of objects. It is safe for concurrent use.
type Tables struct {
	files       *source.Files
	cache       *index.Cache
	twins       *index.Twins
	selections  *selections
	demand      *demand
	partial     *index.Often // reads of rows, by key of the series file
	first       *index.Often // likewise, of the series tables of blocks that have ample room
	metrics     *request.Metrics
	recent      *recent.Segments // nil: none
	maxSeries   int              // that one selector may match
	maxSegments int              // segments and blocks that one selector may read
	seed        uint64
}

// New returns tables that keep decoded ones in cache, and what selectors matched last in
// selectionBytes. kept are segments that this process has stored; nil: none.
func New(files *source.Files, cache *index.Cache, selectionBytes int64, kept *recent.Segments, m *request.Metrics, maxSeries, maxSegments int) *Tables {
	return &Tables{
		files: files, cache: cache, twins: new(index.Twins), selections: &selections{most: selectionBytes / selectionShare, last: memory.NewLRU[string, *selection](selectionBytes)}, demand: new(demand), partial: index.NewOften(index.WholeAfter, index.MaxOften), first: index.NewOften(1, index.MaxOften), metrics: m, recent: kept,
		maxSeries: maxSeries, maxSegments: maxSegments, seed: rand.Uint64(),
	}
}

// Objects returns the objects of a snapshot that overlap [mint, maxt] (ms) and may hold series that
// match one of sets, by rank, the lowest first. No sets match everything. unread (ms) is the latest
// sample in the objects that were left out because they end too early. Callers must not change the
// objects.
func (s *Tables) Objects(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, sets ...[]*labels.Matcher) (out []source.Object, unread int64, err error) {
	all, err := s.files.Live(ctx, snap)
	if err != nil {
		return nil, 0, err
	}
	unread = math.MinInt64
	var known unique.Handle[string] // the label names of the last object
	may := false                    // what MayMatch answered for it
	matches := func(f *source.Footer) bool {
		if f.Names() != known {
			known, may = f.Names(), f.MayMatch(sets)
		}
		return may
	}
	var room [maxOnStack]int32
	taken := room[:0] // positions in all, descending
	for i := len(all) - 1; i >= 0; i-- {
		switch f := all[i].Footer; {
		case f.Rows == 0 || f.MinT > maxt:
		case f.MaxT >= mint:
			if matches(f) {
				taken = append(taken, int32(i))
			}
		case f.MaxT > unread && matches(f):
			unread = f.MaxT
		}
	}
	n := len(taken)
	switch {
	case n > s.maxSegments:
		return nil, 0, request.TooManySegments(s.maxSegments, n)
	case n == 0:
		return nil, unread, nil
	case int(taken[0]-taken[n-1]) == n-1: // as is usual: rank follows time
		return all[taken[n-1] : taken[0]+1 : taken[0]+1], unread, nil
	}
	out = make([]source.Object, n)
	for k, i := range taken {
		out[n-1-k] = all[i]
	}
	return out, unread, nil
}

// maxOnStack is the number of objects whose positions Objects allocates no memory for.
const maxOnStack = 512

// load sets the series tables of the objects for which wanted is true, unless they are set, from
// the cache or from the objects.
func (s *Tables) load(ctx context.Context, objs []source.Object, tables []*index.Table, wanted func(i int) bool) error {
	rest := s.held(objs, tables, wanted)
	return s.files.Each(ctx, len(rest), func(ctx context.Context, k int) (err error) {
		i := rest[k]
		tables[i], err = s.Whole(ctx, &objs[i])
		return err
	})
}

// held sets those of the tables that load sets which the cache holds, and returns the others.
func (s *Tables) held(objs []source.Object, tables []*index.Table, wanted func(i int) bool) []int {
	which := make([]int, 0, len(objs))
	for i := range objs {
		if tables[i] == nil && wanted(i) {
			which = append(which, i)
		}
	}
	if len(which) == 0 {
		return nil
	}
	rest := index.Held(s.cache, len(which), func(k int) string { return objs[which[k]].Series }, func(k int, t *index.Table) { tables[which[k]] = t })
	s.metrics.CountLookups("index", len(which)-len(rest), 0)
	for k, i := range rest {
		rest[k] = which[i]
	}
	return rest
}

// The memory (bytes) of a row of a series table, and of a sample in a decoded segment, about.
const (
	tableRowBytes   = 56
	listSampleBytes = 16
)

// room is how much of the cache the whole series tables of some objects would take.
type room int

const (
	ample   room = iota // a small share of it
	fresh               // likewise; the rows of tables that no selector has read yet may be read alone
	limited             // a large share of it
	none                // more than it has
)

// ampleShare is the inverse of the share of the cache up to which whole tables are read at once.
const ampleShare = 4

// room returns how much of the cache the series tables of objects take, with the samples of those
// that are segments. If it has too little room, whole tables would push one another out, and every
// query would decode all of them.
func (s *Tables) room(objs []source.Object) room {
	n := int64(0)
	for i := range objs {
		f := objs[i].Footer
		n += tableRowBytes * f.Rows
		if f.Meta == nil {
			n += listSampleBytes * f.Samples
		}
	}
	switch limit := s.cache.Limit(); {
	case n <= limit/ampleShare:
		return ample
	case n <= limit:
		return limited
	}
	return none
}

// The first selector that reads a large series table of a block does not wait for the whole of it,
// which costs three times as much, but the second one does. A query of more than a few blocks reads
// rollups, which need whole tables.
const (
	freshRows   = 4 << 10
	freshBlocks = 4
)

func isFresh(o *source.Object) bool { return o.IsBlock() && o.Footer.Rows >= freshRows }

// someShare is the inverse of the share of an object's rows up to which reading them alone costs
// clearly less than the whole table.
const someShare = 4

// count counts objects as read.
func (s *Tables) count(ctx context.Context, objs []source.Object) {
	if len(objs) == 0 {
		return
	}
	var t request.Totals
	rows := int64(0)
	for i := range objs {
		n := objs[i].Size
		if m := objs[i].Footer.Meta; m != nil {
			t.Blocks++
			if f := m.File(block.SeriesFile); f != nil {
				n = f.Bytes
			}
		} else {
			t.Segments++
		}
		t.Bytes.Considered, t.Bytes.Read = t.Bytes.Considered+n, t.Bytes.Read+n
		rows += objs[i].Footer.Rows
	}
	s.metrics.Count(ctx, t)
	s.metrics.Rows.Add(float64(rows))
}

// Whole returns the whole series table of an object.
func (s *Tables) Whole(ctx context.Context, o *source.Object) (*index.Table, error) {
	t, hit, err := index.Get(ctx, s.cache, o.Series, func() (*index.Table, error) {
		return s.read(ctx, o, func(in source.Reader, size int64) (*index.Table, error) {
			if o.Footer.Meta == nil {
				return index.LoadSegment(in, size, s.seed, s.recent.Get(o.Series, size))
			}
			t, err := index.LoadBlock(in, size, o.Footer.Meta, s.seed)
			if err == nil {
				s.twins.Share(t)
			}
			return t, err
		})
	})
	s.metrics.CountLookup("index", hit)
	return t, err
}

// read calls load with the file of an object's series, of size bytes.
func (s *Tables) read(ctx context.Context, o *source.Object, load func(in source.Reader, size int64) (*index.Table, error)) (t *index.Table, err error) {
	size := o.Size
	if m := o.Footer.Meta; m != nil {
		f := m.File(block.SeriesFile)
		if f == nil {
			return nil, o.Broken(fmt.Errorf("read series of %s: %w: meta.json names no %s", o.Series, block.ErrFormat, block.SeriesFile))
		}
		size = f.Bytes
	}
	in := s.files.Open(ctx, o.Series, size)
	if err = in.Prefetch([][2]int64{{0, size}}); err == nil {
		t, err = load(in, size)
	}
	if err = errors.Join(err, in.Close()); err != nil {
		return nil, o.Broken(fmt.Errorf("read series of %s: %w", o.Series, err))
	}
	return t, nil
}
