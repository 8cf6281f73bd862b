package lookup

import (
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/source"
)

// selections remember which rows of objects matched the selectors that were evaluated last. Objects
// are immutable, so a selector that a rule or a dashboard repeats is matched only against the
// objects that came since.
type selections struct {
	most int64 // bytes that one selection may take

	mu   sync.Mutex
	last *memory.LRU[string, *selection] // by selectionKey
}

// selectionShare is the inverse of the share of the memory that one selection may take. What takes
// more is matched for every query.
const selectionShare = 16

// get returns the selection of a key for a read of a snapshot with live objects. It is empty if
// nothing is known, or most of what is known belongs to objects that are not live any more.
func (s *selections) get(key string, live int) *selection {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.last.Get(key)
	if e != nil && !e.Value.outdated(live) {
		return e.Value
	}
	if e != nil {
		s.last.Remove(e)
	}
	x := &selection{parts: map[uint32]*objectRows{}, found: finder{limit: math.MaxInt}}
	s.last.Add(key, x, selectionBytes+int64(len(key)))
	s.last.Evict(0)
	return x
}

// resize notes the bytes that a selection takes now, and forgets it if they are too many.
func (s *selections) resize(key string, x *selection, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.last.Get(key)
	if e == nil || e.Value != x {
		return // it was forgotten meanwhile
	}
	s.last.Remove(e)
	if bytes <= s.most {
		s.last.Add(key, x, selectionBytes+int64(len(key))+bytes)
		s.last.Evict(0)
	}
}

// fits reports whether so many rows may be remembered.
func (s *selections) fits(ranges [][]index.Range) bool {
	n := int64(0)
	for _, rows := range ranges {
		for _, r := range rows {
			n += rowBytes * int64(r.To-r.From)
		}
	}
	return n <= s.most
}

// selection is the rows of objects that match a selector. Objects are known by the numbers of their
// footers. Series and parts are only added to it, so a read may use what it has got while others
// extend it.
type selection struct {
	mu    sync.Mutex
	found finder                 // series of the rows of all parts
	parts map[uint32]*objectRows // by object: those with rows
	none  numbers                // the objects without rows
	last  *objectRows            // that was added last
	bytes int64                  // of memory, about
}

// objectRows is the rows of one object that match and have samples. It is immutable.
type objectRows struct {
	rows []Row
	// ms: the latest first time and the earliest last time of a row. All rows overlap a range that
	// does not end before the former and does not begin after the latter.
	from, upto int64
	table      *index.Table // of these rows alone, if the whole one was not read
}

// The memory (bytes) of a selection without parts, of a part, and of a series without labels,
// about. So also selectors that match nothing are bounded in number.
const (
	selectionBytes       = 512
	partBytes            = 128
	foundBytes           = 128
	rowBytes       int64 = 8
	orderBytes     int64 = 4
)

// orderedFrom is the number of series from which their order is remembered: to sort many takes as
// long as all else that is planned for them.
const orderedFrom = 256

// keepOrder notes the order of the first series of a selection, and returns the bytes that the
// selection takes now.
func (x *selection) keepOrder(order []int32) (bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bytes += orderBytes * int64(len(order)-len(x.found.order))
	x.found.order = order
	return x.bytes
}

// spareParts is the number of parts of objects that are not live, beyond those of as many that are,
// from which a selection is begun anew.
const spareParts = 16

func (x *selection) outdated(live int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.parts)+x.none.n > 2*live+spareParts
}

// noRows is the part of every object without rows.
var noRows = &objectRows{from: math.MinInt64, upto: math.MaxInt64}

// part returns the part of an object, nil if it is not known. The caller holds mu.
func (x *selection) part(o *source.Object) *objectRows {
	if x.none.has(o.Footer.Number) {
		return noRows
	}
	return x.parts[o.Footer.Number]
}

// known returns those of the objects that may have rows, with their parts, nil for those that are
// not known, the numbers of these, and the series of the parts. Objects that are new to the
// selection have no rows if the filters in their footers say so.
func (x *selection) known(all []source.Object, sets [][]*labels.Matcher) (objs []source.Object, parts []*objectRows, unknown []int, found finder) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var roomObjs [fewObjects]source.Object // most selectors have rows in a few objects of many
	var roomParts [fewObjects]*objectRows
	few, ofFew := roomObjs[:0], roomParts[:0]
	fresh, out := x.fresh(all, sets)
	for i := range all {
		isOut := false
		if len(fresh) > 0 && fresh[0] == i {
			isOut, fresh, out = out[0], fresh[1:], out[1:]
		}
		p := x.part(&all[i])
		switch {
		case isOut:
			x.bytes += x.none.add(all[i].Footer.Number)
			continue
		case p == noRows:
			continue
		case p == nil:
			unknown = append(unknown, len(few))
		}
		few, ofFew = append(few, all[i]), append(ofFew, p)
	}
	objs, parts = make([]source.Object, len(few)), make([]*objectRows, len(few))
	copy(objs, few)
	copy(parts, ofFew)
	return objs, parts, unknown, x.found.view()
}

// fresh returns the objects that are new to the selection, and which of them have no row that
// matches one of sets, by the filters in their footers. The caller holds mu.
func (x *selection) fresh(all []source.Object, sets [][]*labels.Matcher) (some []int, out []bool) {
	var footers index.Footers
	for i := range all {
		if x.part(&all[i]) == nil {
			some, footers = append(some, i), append(footers, &all[i].Footer.Info)
		}
	}
	if len(some) == 0 {
		return nil, nil
	}
	wanted := make([]index.Wanted, len(sets))
	for i, ms := range sets {
		wanted[i] = index.WantedBy(ms)
	}
	return some, footers.Exclude(wanted)
}

// fewObjects is the number of objects up to which known needs no memory beside its results.
const fewObjects = 64

// extend sets the parts of objects that were not known: those of the ranges of rows that match. It
// returns the series of all parts, and the bytes that the selection takes now.
func (x *selection) extend(objs []source.Object, parts []*objectRows, unknown []int, tables []*index.Table, ranges [][]index.Range) (found finder, bytes int64, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, i := range unknown {
		if parts[i] = x.part(&objs[i]); parts[i] == nil {
			if parts[i], err = x.add(objs[i].Footer.Number, tables[i], ranges[k]); err != nil {
				return finder{}, 0, err
			}
		}
		if p := parts[i]; len(p.rows) > 0 && p.table == nil && tables[i].Partial() {
			known := *p
			known.table = tables[i].WithoutLabels()
			parts[i], x.parts[objs[i].Footer.Number] = &known, &known
			x.bytes += known.table.Bytes()
		}
	}
	return x.found.view(), x.bytes, nil
}

// add adds the part of an object that is not known: those of the ranges of rows of its table that
// have samples. The caller holds mu.
func (x *selection) add(object uint32, t *index.Table, ranges []index.Range) (*objectRows, error) {
	before := len(x.found.series)
	rows, err := x.found.add(t, ranges, func(row int) bool { return hasSamples(t, row) })
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		x.bytes += x.none.add(object)
		return noRows, nil
	}
	for _, s := range x.found.series[before:] {
		x.bytes += foundBytes + int64(s.Labels.ByteSize())
	}
	if x.last != nil && slices.Equal(rows, x.last.rows) {
		rows = x.last.rows // neighbours mostly have the same series
	} else {
		x.bytes += rowBytes * int64(cap(rows))
	}
	p := &objectRows{rows: rows, from: math.MinInt64, upto: math.MaxInt64}
	for _, x := range rows {
		from, upto := t.Times(int(x.N))
		p.from, p.upto = max(p.from, from), min(p.upto, upto)
	}
	x.last = p
	x.parts[object] = x.last
	x.bytes += partBytes
	return x.last, nil
}

// overlapping returns the rows that overlap [mint, maxt] (ms). t is the series table.
func (p *objectRows) overlapping(t *index.Table, mint, maxt int64) (out []Row) {
	if p.from <= maxt && p.upto >= mint {
		return p.rows
	}
	for _, x := range p.rows {
		if from, upto := t.Times(int(x.N)); from <= maxt && upto >= mint {
			out = append(out, x)
		}
	}
	return out
}

// hasSamples reports whether a row has floats or histograms.
func hasSamples(t *index.Table, row int) bool {
	_, floats := t.Floats(row)
	_, hists := t.Hists(row)
	return floats+hists > 0
}

// selectionKey identifies lists of matchers of a tenant.
func selectionKey(tenant string, sets [][]*labels.Matcher) string {
	b := make([]byte, 0, 128)
	b = append(append(b, tenant...), '/')
	for _, ms := range sets {
		b = append(strconv.AppendInt(b, int64(len(ms)), 10), '/')
		for _, m := range ms {
			b = append(strconv.AppendInt(b, int64(len(m.Name)), 10), ' ')
			b = append(append(b, m.Name...), m.Type.String()...)
			b = append(strconv.AppendInt(b, int64(len(m.Value)), 10), ' ')
			b = append(b, m.Value...)
		}
	}
	return string(b)
}
