// Package series interns label sets. A Table assigns a dense reference to every label set and
// stores its labels as small integers (ordinals of names and values), so that a writer can encode
// dictionary columns without processing a string twice.
package series

import (
	"errors"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"
)

// None is no label set.
const None Ref = 1<<32 - 1

// Ref is the index of a label set in its Table, dense from 0 in order of insertion.
type Ref uint32

// Pair is a label as ordinals: Name indexes View.Names, Value indexes View.Values[Name].
type Pair struct{ Name, Value uint32 }

// Label is a name and a value.
type Label struct{ Name, Value string }

// ErrFull reports that a Table has reached its maximum number of series.
var ErrFull = errors.New("series table is full")

// maxRefs keeps ordinals within 32 bits.
const maxRefs = 1<<32 - 2

// Table interns label sets. It only grows; its owner replaces it as a whole.
//
// Locking: Lookup needs the read lock; Intern, Alias and View need the write lock (View and Viewed
// may share the read lock with Lookup). The slices of a View are append-only, so reading a View
// needs no lock.
type Table struct {
	sync.RWMutex
	seed uint64
	self *identity

	firstBy  chunked[Key]    // by ref: the first raw key of a sender's encoding that Alias recorded, or zero
	firstLen chunked[uint16] // by ref: bytes of what that key is a hash of, or 0 (SetLength); may be shorter
	byFirst  refSet          // by those keys
	others   []alias         // further raw keys of label sets
	byOther  refSet          // of indexes in others, by the keys
	byLabel  refSet          // by the label sets; Add and AddPairs leave it empty until something else needs it

	names    []string
	nameOrd  map[string]uint32
	priority []uint8 // by name ordinal: priorityOf
	values   []*dict // by name ordinal
	metrics  dict

	sets  labelSets // without __name__, in name order
	bytes int64
	buf   []byte
	list  []Pair // of the label set that is added
}

// Key is a 128-bit hash that identifies the bytes it was computed from. Keys of outside data are
// computed with a seed that senders do not know, so that equal keys can be treated as equal bytes.
type Key = xxh3.Uint128

// alias is a raw key of a label set.
type alias struct {
	key Key
	ref Ref
}

// identity is by its address the content of a table between two calls of Reset. It has a size, so
// that no two have one address.
type identity struct{ _ byte }

// dict is the set of the values of a label name, in order of insertion.
type dict struct {
	vals []string
	ord  map[string]uint32
}

func (d *dict) intern(s string) (ord uint32, added bool) {
	if o, ok := d.ord[s]; ok {
		return o, false
	}
	if d.ord == nil {
		d.ord = map[string]uint32{}
	}
	s = strings.Clone(s)
	o := uint32(len(d.vals))
	d.vals = append(d.vals, s)
	d.ord[s] = o
	return o, true
}

// NewTable returns an empty table. seed is the key of the hashes of outside data; senders must not
// know it.
func NewTable(seed uint64) *Table {
	return &Table{seed: seed, self: new(identity), nameOrd: map[string]uint32{}}
}

// Reset empties the table and gives it a new seed. Later label sets use the memory of those before:
// no View of the table may be used any more.
func (t *Table) Reset(seed uint64) {
	t.seed, t.self, t.bytes = seed, new(identity), 0
	t.byFirst, t.byOther, t.byLabel = refSet{}, refSet{}, refSet{}
	t.firstBy.reset()
	t.firstLen.reset()
	t.others = t.others[:0]
	clear(t.nameOrd)
	t.names, t.values, t.priority, t.metrics = nil, nil, nil, dict{}
	t.sets.reset()
}

// Seal frees what only Lookup, Intern and Alias need, none of which may be called before the next
// Reset.
func (t *Table) Seal() {
	t.byFirst, t.byOther, t.byLabel, t.firstBy, t.firstLen, t.others = refSet{}, refSet{}, refSet{}, chunked[Key]{}, chunked[uint16]{}, nil
	t.nameOrd, t.metrics.ord = map[string]uint32{}, nil
	for _, d := range t.values {
		d.ord = nil
	}
}

// Seed returns the secret seed of raw keys.
func (t *Table) Seed() uint64 { return t.seed }

// Len returns the number of label sets.
func (t *Table) Len() int { return t.sets.at.n }

// Bytes returns the approximate memory of the table, in bytes.
func (t *Table) Bytes() int64 {
	const perHash, perKey, perLen, perAlias = 8, 16, 2, 24
	return t.bytes + int64(len(t.byFirst.slots)+len(t.byOther.slots)+len(t.byLabel.slots))*perHash +
		int64(t.firstBy.n)*perKey + int64(t.firstLen.n)*perLen + int64(len(t.others))*perAlias + t.sets.bytes()
}

// Lookup returns the label set that Alias recorded for a raw key.
func (t *Table) Lookup(k Key) (Ref, bool) {
	if ref, ok := t.byFirst.find(uint32(k.Lo), func(r Ref) bool { return *t.firstBy.at(int(r)) == k }); ok {
		return ref, true
	}
	i, ok := t.byOther.find(uint32(k.Lo), func(i Ref) bool { return t.others[i].key == k })
	if !ok {
		return 0, false
	}
	return t.others[i].ref, true
}

// Warm reads the memory that Lookup of a raw key reads first. A loop that does this for many keys
// waits for the memory of all of them at once; Lookup waits for that of each. The result has no
// meaning.
func (t *Table) Warm(k Key) uint32 {
	if s := &t.byFirst; s.n > 0 {
		return s.slots[uint32(k.Lo)&uint32(len(s.slots)-1)].hash
	}
	return 0
}

// LookupNear is Lookup with a guess of the result. Senders repeat their series in the same order,
// so the series after reference r usually has reference r+1. A right guess avoids a probe of the
// set, whose slots are rarely in the processor's cache.
func (t *Table) LookupNear(k Key, guess Ref) (Ref, bool) {
	if int(guess) < t.firstBy.n && *t.firstBy.at(int(guess)) == k {
		return guess, true
	}
	return t.Lookup(k)
}

// Near returns the first raw key of a label set, and the length of what it is a hash of, 0 if that
// is not known or the key is none. It needs the read lock.
func (t *Table) Near(r Ref) (k Key, length int) {
	if int(r) >= t.firstLen.n {
		return Key{}, 0
	}
	return *t.firstBy.at(int(r)), int(*t.firstLen.at(int(r)))
}

// SetLength records the length of what a raw key of a label set is a hash of, if Near returns this
// key. It needs the write lock.
func (t *Table) SetLength(k Key, r Ref, length int) {
	if length == 0 || length > math.MaxUint16 || int(r) >= t.firstBy.n || *t.firstBy.at(int(r)) != k {
		return
	}
	for t.firstLen.n <= int(r) {
		t.firstLen.append(0)
	}
	*t.firstLen.at(int(r)) = uint16(length)
}

// Alias records ref for a raw key. A known key keeps its reference.
func (t *Table) Alias(k Key, ref Ref) {
	if _, ok := t.Lookup(k); ok {
		return
	}
	t.AliasNew(k, ref)
}

// AliasNew is Alias for a raw key that Lookup does not find.
func (t *Table) AliasNew(k Key, ref Ref) {
	for t.firstBy.n <= int(ref) { // tables without keys of senders have none
		t.firstBy.append(Key{})
	}
	first := t.firstBy.at(int(ref))
	if *first != (Key{}) || k == (Key{}) {
		t.byOther.put(uint32(k.Lo), Ref(len(t.others)))
		t.others = append(t.others, alias{k, ref})
		return
	}
	*first = k
	t.byFirst.put(uint32(k.Lo), ref)
}

// Intern returns the reference of a label set and adds the set if it is new. lset must be sorted by
// name, without duplicate names and without empty values; __name__ may be at any position. The
// strings are copied. It fails with ErrFull.
func (t *Table) Intern(lset []Label) (Ref, error) {
	metric := t.ordinals(lset)
	return t.InternPairs(metric, t.list)
}

// Add is Intern and then AliasNew, for a raw key that is a function of the label set, as AddPairs
// has it.
func (t *Table) Add(k Key, lset []Label) (Ref, error) {
	metric := t.ordinals(lset)
	return t.AddPairs(k, metric, t.list)
}

// ordinals sets list to the ordinals of a label set without its metric, and returns that of the
// metric.
func (t *Table) ordinals(lset []Label) (metric uint32) {
	name := ""
	t.list = t.list[:0]
	for _, l := range lset {
		if l.Name == model.MetricNameLabel {
			name = l.Value
			continue
		}
		n := t.NameOrd(l.Name)
		t.list = append(t.list, Pair{n, t.ValueOrd(n, l.Value)})
	}
	return t.MetricOrd(name)
}

// MetricOrd returns the ordinal of a metric name, "" for none, and adds the name if it is new.
func (t *Table) MetricOrd(name string) uint32 { return t.internValue(&t.metrics, name) }

// ValueOrd returns the ordinal of a value of the label name with an ordinal, and adds the value if
// it is new.
func (t *Table) ValueOrd(name uint32, v string) uint32 { return t.internValue(t.values[name], v) }

// InternPairs is Intern for a label set as ordinals of this table: its metric and its other labels,
// sorted by name. It copies pairs.
func (t *Table) InternPairs(metric uint32, pairs []Pair) (Ref, error) {
	t.index()
	t.spell(metric, pairs)
	hash := uint32(xxh3.HashSeed(t.buf, t.seed))
	is := func(r Ref) bool {
		return t.sets.metric(r) == metric && slices.Equal(t.sets.pairs(r), pairs)
	}
	if ref, ok := t.byLabel.find(hash, is); ok {
		return ref, nil
	}
	if t.sets.full() {
		return 0, ErrFull
	}
	ref := t.append(metric, pairs)
	t.byLabel.put(hash, ref)
	return ref, nil
}

// AddPairs is InternPairs and then Alias, for a raw key that Lookup does not find and that is a
// function of the label set. Where all label sets of the table came through it, the label set is
// new, and adding it takes less time and memory.
func (t *Table) AddPairs(k Key, metric uint32, pairs []Pair) (Ref, error) {
	if t.byLabel.n > 0 {
		ref, err := t.InternPairs(metric, pairs)
		if err == nil {
			t.Alias(k, ref)
		}
		return ref, err
	}
	if t.sets.full() {
		return 0, ErrFull
	}
	t.spell(metric, pairs)
	ref := t.append(metric, pairs)
	t.AliasNew(k, ref)
	return ref, nil
}

// index adds to byLabel the label sets that Add and AddPairs have added.
func (t *Table) index() {
	if t.byLabel.n > 0 {
		return
	}
	for i := range t.Len() {
		r := Ref(i)
		t.spell(t.sets.metric(r), t.sets.pairs(r))
		t.byLabel.put(uint32(xxh3.HashSeed(t.buf, t.seed)), r)
	}
}

// spell writes the bytes of a label set, of which its hashes are, to buf.
func (t *Table) spell(metric uint32, rest []Pair) {
	m := t.metrics.vals[metric]
	t.buf = t.buf[:0]
	for len(rest) > 0 && t.names[rest[0].Name] < model.MetricNameLabel {
		t.appendPair(rest[0])
		rest = rest[1:]
	}
	if m != "" {
		t.buf = appendLabel(t.buf, model.MetricNameLabel, m)
	}
	for _, p := range rest {
		t.appendPair(p)
	}
}

func (t *Table) appendPair(p Pair) {
	t.buf = appendLabel(t.buf, t.names[p.Name], t.values[p.Name].vals[p.Value])
}

// append adds a label set, whose bytes are in buf.
func (t *Table) append(metric uint32, pairs []Pair) Ref {
	ref := Ref(t.Len())
	t.sets.add(xxh3.Hash(t.buf), metric, pairs)
	return ref
}

// mapEntryBytes approximates the memory of a string in a dict in addition to its bytes.
const mapEntryBytes = 64

// NameOrd returns the ordinal of a label name other than __name__, and adds the name if it is new.
func (t *Table) NameOrd(name string) uint32 {
	if n, ok := t.nameOrd[name]; ok {
		return n
	}
	name = strings.Clone(name)
	n := uint32(len(t.names))
	t.names = append(t.names, name)
	t.nameOrd[name] = n
	t.values = append(t.values, &dict{})
	t.priority = append(t.priority, uint8(slices.Index(priorityNames[:], name)+1))
	t.bytes += int64(len(name)) + mapEntryBytes
	return n
}

func (t *Table) internValue(d *dict, v string) uint32 {
	ord, added := d.intern(v)
	if added {
		t.bytes += int64(len(v)) + mapEntryBytes
	}
	return ord
}

// View is a snapshot of a Table, safe to read while the Table grows.
type View struct {
	Names   []string   // by name ordinal, without __name__
	Values  [][]string // by name ordinal, by value ordinal
	Metrics []string   // by metric ordinal

	self     *identity
	sets     labelSets
	priority []uint8 // by name ordinal: priorityOf
}

// Viewed reports whether a view has all label sets of the table.
func (t *Table) Viewed(v *View) bool { return v != nil && v.self == t.self && v.Len() == t.Len() }

// View returns a snapshot of the table.
func (t *Table) View() View {
	v := View{
		Names: t.names, Values: make([][]string, len(t.values)), Metrics: t.metrics.vals, self: t.self,
		sets: t.sets.snapshot(), priority: t.priority,
	}
	for i, d := range t.values {
		v.Values[i] = d.vals
	}
	return v
}

// SameTable reports whether two views are of one table, so that a reference of both is one label
// set.
func (v *View) SameTable(o *View) bool { return v.self == o.self }

// Len returns the number of label sets in the view.
func (v *View) Len() int { return v.sets.at.n }

// Metric returns the metric ordinal of a label set.
func (v *View) Metric(r Ref) uint32 { return v.sets.metric(r) }

// Pairs returns the labels of a label set without __name__, in name order.
func (v *View) Pairs(r Ref) []Pair { return v.sets.pairs(r) }

// Labels returns a label set, built with b.
func (v *View) Labels(b *labels.ScratchBuilder, r Ref) labels.Labels {
	b.Reset()
	if m := v.Metrics[v.Metric(r)]; m != "" {
		b.Add(model.MetricNameLabel, m)
	}
	for _, p := range v.Pairs(r) {
		b.Add(v.Names[p.Name], v.Values[p.Name][p.Value])
	}
	b.Sort()
	return b.Labels()
}

// Warm reads the memory of label sets, for a caller who goes on to read each of them: it waits for
// all of it at once. The result has no meaning.
func (v *View) Warm(refs []Ref) (sum uint32) {
	const further = 6 // mostly lies in the next line of the cache
	for _, r := range refs {
		set := v.sets.set(r)
		sum += set[1].Name + set[min(further, len(set)-1)].Name
	}
	return sum
}

// ID returns the series identifier (ID) of a label set.
func (v *View) ID(r Ref) uint64 { return v.sets.id(r) }

// Compare orders label sets by metric, then by their other labels as upstream's labels.Compare
// does: label by label, name before value, a prefix before its extensions.
func (v *View) Compare(a, b Ref) int {
	if ma, mb := v.Metric(a), v.Metric(b); ma != mb {
		return strings.Compare(v.Metrics[ma], v.Metrics[mb])
	}
	pa, pb := v.Pairs(a), v.Pairs(b)
	for i := range min(len(pa), len(pb)) {
		x, y := pa[i], pb[i]
		if x.Name != y.Name {
			return strings.Compare(v.Names[x.Name], v.Names[y.Name])
		}
		if x.Value != y.Value {
			return strings.Compare(v.Values[x.Name][x.Value], v.Values[x.Name][y.Value])
		}
	}
	return len(pa) - len(pb)
}
