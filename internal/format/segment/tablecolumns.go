package segment

import (
	"slices"
	"sort"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/series"
)

// tableColumns are the label sets that a table had at some time, in columns and in the order of
// segments. The rows of a segment are some of them in the same order, so a writer reads each column
// from its beginning to its end, while the label sets themselves are anywhere in memory. A rank is a
// position in that order. nil has none.
type tableColumns struct {
	order   *series.Order // of the table as it is now
	n       int           // label sets in the columns: those with a lower reference
	later   []uint32      // the positions in order, ascending, of label sets that came later
	sorted  int           // label sets in order when later was made
	ids     []uint64      // by rank
	metrics []metricColumns
	bytes   int64
}

// metricColumns are the label sets of a metric. The first one follows the last one of the metric
// before.
type metricColumns struct {
	first, end uint32 // ranks
	metric     uint32 // ordinal
	labels     []labelColumnOf
}

// labelColumnOf is the label of a name in the label sets of a metric: some of them have it. If all
// of them have the same value, there are neither near nor far. Otherwise one of these has the
// ordinals of the values plus one by rank, from that of the metric's first label set on; 0: it does
// not have the label.
type labelColumnOf struct {
	name  uint32 // ordinal
	value uint32 // ordinal
	all   bool   // all label sets have it
	near  []uint16
	far   []uint32 // if 16 bits are not enough
}

// known reports whether a label set is in the columns.
func (t *tableColumns) known(r series.Ref) bool { return int(r) < t.n }

// mostLater is the inverse of the share of label sets that may have come later.
const mostLater = 4

// ready brings later up to date. It reports false if there are too many of them, or no columns.
func (t *tableColumns) ready() bool {
	if t == nil || (t.order.Len()-t.n)*mostLater > t.n {
		return false
	}
	if t.sorted == t.order.Len() {
		return true
	}
	t.later, t.sorted = t.later[:0], t.order.Len()
	for at := range uint32(t.sorted) {
		if !t.known(t.order.At(at)) {
			t.later = append(t.later, at)
		}
	}
	return true
}

// find returns the index of the metric of a rank, of those from one on.
func (t *tableColumns) find(from int, rank uint32) int {
	if from < len(t.metrics) && rank < t.metrics[from].end {
		return from
	}
	rest := t.metrics[from:]
	return from + sort.Search(len(rest), func(i int) bool { return rank < rest[i].end })
}

// newTableColumns makes columns of all label sets of a view, whose order is up to date. It returns
// nil if they take more than limit bytes.
func newTableColumns(v *series.View, order *series.Order, limit int64) *tableColumns {
	const perSeries, perMetric, perLabel = 8, 48, 64
	n := v.Len()
	t := &tableColumns{order: order, n: n, sorted: n, bytes: perSeries * int64(n)}
	if order.Len() != n || t.bytes > limit {
		return nil
	}
	t.ids = make([]uint64, n)
	b := columnsBuilder{view: v, slots: make([]int, len(v.Names)), near: map[uint64][]uint16{}, far: map[uint64][]uint32{}}
	for rank := 0; rank < n; {
		m := metricColumns{first: uint32(rank), metric: v.Metric(order.At(uint32(rank)))}
		for _, name := range b.names {
			b.slots[name] = 0
		}
		b.names, b.rows = b.names[:0], 0
		for ; rank < n; rank++ {
			if rank%warmed == 0 {
				b.warm(order, rank)
			}
			ref := order.At(uint32(rank))
			if v.Metric(ref) != m.metric {
				break
			}
			t.ids[rank] = v.ID(ref)
			b.add(v.Pairs(ref))
		}
		m.end = uint32(rank)
		m.labels = b.end(int(m.end - m.first))
		t.metrics = append(t.metrics, m)
		if t.bytes += perMetric + perLabel*int64(cap(m.labels)); t.bytes+b.bytes > limit {
			return nil
		}
	}
	t.bytes += b.bytes
	return t
}

// columnsBuilder makes the columns of one metric after the other.
type columnsBuilder struct {
	view   *series.View
	slots  []int      // by name ordinal: one more than the index of the label; 0: the metric has none
	names  []uint32   // of the labels
	values [][]uint32 // of the labels: ordinals plus one, up to the last label set that has it; their memory is reused
	rows   int        // label sets so far
	warmed uint32     // of View.Warm
	next   [warmed]series.Ref

	// What was made so far, by hash. Many metrics have the same labels of the same targets, and many
	// labels have equal ordinals, since their values come together.
	near  map[uint64][]uint16
	far   map[uint64][]uint32
	bytes int64 // of these
}

// warm reads the memory of the label sets from a rank on.
func (b *columnsBuilder) warm(order *series.Order, rank int) {
	n := min(warmed, order.Len()-rank)
	for i := range n {
		b.next[i] = order.At(uint32(rank + i))
	}
	b.warmed += b.view.Warm(b.next[:n])
}

// add adds a label set.
func (b *columnsBuilder) add(pairs []series.Pair) {
	for _, p := range pairs {
		at := b.slots[p.Name]
		if at == 0 {
			b.names = append(b.names, p.Name)
			at = len(b.names)
			b.slots[p.Name] = at
			if len(b.values) < at {
				b.values = append(b.values, nil)
			}
			b.values[at-1] = b.values[at-1][:0]
		}
		b.values[at-1] = append(padded(b.values[at-1], b.rows), p.Value+1)
	}
	b.rows++
}

// padded appends zeros up to a length.
func padded(s []uint32, n int) []uint32 {
	for len(s) < n {
		s = append(s, 0)
	}
	return s
}

// end returns the labels of the metric, which has n label sets.
func (b *columnsBuilder) end(n int) []labelColumnOf {
	out := make([]labelColumnOf, len(b.names))
	for i, name := range b.names {
		ords := padded(b.values[i], n)
		b.values[i] = ords
		lo, hi := slices.Min(ords), slices.Max(ords)
		l := labelColumnOf{name: name, all: lo > 0}
		switch {
		case lo == hi:
			l.value = lo - 1
		case hi <= 1<<16-1:
			near := make([]uint16, n)
			for i, o := range ords {
				near[i] = uint16(o)
			}
			l.near = shared(b.near, near, &b.bytes)
		default:
			l.far = shared(b.far, slices.Clone(ords), &b.bytes)
		}
		out[i] = l
	}
	return out
}

// shared returns what was made before and is equal to s, or s. It adds the memory of the latter to
// bytes.
func shared[T uint16 | uint32](made map[uint64][]T, s []T, bytes *int64) []T {
	size := len(s) * int(unsafe.Sizeof(s[0]))
	hash := xxh3.Hash(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), size))
	if before, ok := made[hash]; ok && slices.Equal(before, s) {
		return before
	}
	made[hash] = s
	*bytes += int64(size)
	return s
}
