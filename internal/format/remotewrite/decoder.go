package remotewrite

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/series"
)

// Protocol is a version of the remote-write protocol.
type Protocol int

// The versions.
const (
	V1 Protocol = 1 // prometheus.WriteRequest, remote-write specification 1.0
	V2 Protocol = 2 // io.prometheus.write.v2.Request, remote-write specification 2.0
)

func (p Protocol) String() string { return strconv.Itoa(int(p)) }

// decoder turns one remote-write message into a batch. It walks the bytes in place: a series whose
// label bytes were seen before costs a hash and a look-up; only an unknown one is parsed, checked
// and interned. A decoder is reused; one goroutine at a time uses it.
type decoder struct {
	Builder
	table  *series.Table // of the batch's generation
	seed   uint64        // of the keys of series
	guess  series.Ref    // of the next series
	near   bool          // the last guess was right
	unseen int           // series in a row that were not known
	misses []miss
	warm   uint32 // of Table.Warm

	joined  []byte // label fields of a series that are not adjacent (1.0)
	symbols symbols
	refs    []uint32 // label references of the current series (2.0)
	exRefs  []uint32 // label references of the current exemplar (2.0)
	arena   []uint32 // label references of missed series (2.0)
}

// miss is a series that was not known when its samples were read.
type miss struct {
	key      series.Key
	given    *given // by the sender; nil: nothing
	labels   []byte // label fields as they stand in the message (1.0)
	refs     []uint32
	from, to Mark
	place    int32
	raw      bool // the key is a hash of labels
}

// given is what a sender of this process has of a series.
type given struct {
	memo *Memo         // instead of the key, if it is not nil
	lset labels.Labels // instead of labels and refs, if it is not empty
}

var decoders = sync.Pool{New: func() any { return new(decoder) }}

// Decode turns a message into a batch of the generation g. A message that breaks a rule for some
// series keeps the others, and the batch has the first offence; one that touches too many windows
// is refused as a whole with a *Rejection. Other errors are ErrMalformed, a *DenseError, or what
// the room's grow returned; nothing of the message is kept then.
func Decode(version Protocol, msg []byte, g *Generation, rules Rules, room Room) (*Batch, error) {
	return decode(version, g, rules, room, func(d *decoder) error {
		walk := d.walkV1
		if version == V2 {
			walk = d.walkV2
		}
		err := walk(msg)
		if err == nil || d.refused {
			return err
		}
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	})
}

// decode makes a batch with walk, which adds samples, and the series that it does not find to
// misses.
func decode(version Protocol, g *Generation, rules Rules, room Room, walk func(*decoder) error) (*Batch, error) {
	d := decoders.Get().(*decoder)
	defer func() {
		if d.table == nil {
			decoders.Put(d)
		} else { // a panic: what was begun stays half done
			g.Defective.Store(true)
		}
	}()
	d.Begin(g, rules, room)
	d.table, d.seed, d.unseen = g.Table, seedOf(g.Table, rules.Labels), 0
	err := d.locked(walk)
	if err == nil {
		err = d.finish(version)
	}
	out, err := d.End(err)
	// Drop all references to the message and the generation.
	d.table = nil
	if cap(d.misses) > keepMisses || cap(d.arena) > 16*keepMisses || cap(d.symbols.text) > keepMisses {
		d.misses, d.arena, d.symbols = nil, nil, symbols{}
	}
	clear(d.misses)
	clear(d.symbols.text)
	d.misses, d.arena, d.symbols.text = d.misses[:0], d.arena[:0], d.symbols.text[:0]
	if err != nil {
		return nil, err
	}
	out.fit()
	return out, nil
}

// locked calls walk with the table's read lock.
func (d *decoder) locked(walk func(*decoder) error) error {
	d.table.RLock()
	defer d.table.RUnlock()
	return walk(d)
}

// finish interns the missed series and checks the windows.
func (d *decoder) finish(version Protocol) error {
	if len(d.misses) > 0 {
		if err := d.resolve(version); err != nil {
			return err
		}
	}
	if len(d.Batch.Exemplars) > 0 && d.Batch.Generation.Untimed.mark(d.Batch.Exemplars) {
		d.Batch.sweep()
	}
	if d.MaxWindows == 0 {
		return nil
	}
	n := d.Batch.windows(d.MaxWindows)
	if n > d.MaxWindows && len(d.Batch.Exemplars) > 0 {
		// Remove the exemplars that lie in windows without samples.
		all := d.Batch.Exemplars
		d.Batch.Exemplars = nil
		seen := d.Batch.windowSet()
		d.Batch.Exemplars = slices.DeleteFunc(all, func(e Exemplar) bool {
			_, ok := seen[key.WindowOf(e.Ts)]
			if !ok {
				d.rejectExemplar(fmt.Errorf("the request's samples and exemplars lie in %d windows of 2h, the limit is %d (max-windows-per-request)", n, d.MaxWindows))
			}
			return !ok
		})
		d.Batch.sweep()
		n = d.Batch.windows(d.MaxWindows)
	}
	if n <= d.MaxWindows {
		return nil
	}
	err := rejectf(ReasonWindows, "the request's samples lie in %d windows of 2h, the limit is %d (max-windows-per-request): nothing of it was stored, send it in parts of fewer days",
		n, d.MaxWindows)
	d.discard(ReasonWindows, err, TallyOf(d.Batch).Samples())
	return err
}

// keepMisses is the number of unknown series of a message above which the decoder's buffers are not
// kept for the next message.
const keepMisses = 16 << 10

// warmed is the number of misses whose memory in the table is read at once.
const warmed = 64

// unseenAtOnce is the number of unknown series in a row from which one in so many is searched,
// while a sender sends its series for the first time: learn searches all of them again, many at
// once.
const unseenAtOnce = 16

// known gives what follows the mark to the series with this key, or reports that it may not be
// known yet. The caller holds the table's read lock.
func (d *decoder) known(k series.Key, from Mark) bool {
	if d.unseen%unseenAtOnce != 0 && d.unseen > unseenAtOnce {
		d.unseen++
		return false // most likely; learn finds it otherwise
	}
	ref, ok := d.table.LookupNear(k, d.guess)
	d.near = ok && ref == d.guess
	if d.unseen++; ok {
		d.unseen = 0
		d.guess = ref + 1
		d.Batch.Assign(from, d.Batch.Mark(), ref)
	}
	return ok
}

// resolve interns the missed series and removes what belongs to refused ones.
func (d *decoder) resolve(version Protocol) error {
	t := d.table
	t.Lock()
	defer t.Unlock()
	known, learned := t.Bytes(), d.learns(version)
	// What is learned does not make the message dense, so it raises the limit of its room; the
	// limit of all bytes in flight still holds.
	d.most += learned
	if err := d.Reserve(learned); err != nil {
		return err
	}
	defer func() { d.left -= min(max(t.Bytes()-known, 0), learned) }()
	refused := false
	for i, m := range d.misses {
		if i%warmed == 0 {
			for _, next := range d.misses[i:min(i+warmed, len(d.misses))] {
				d.warm += t.Warm(next.key)
			}
		}
		ref, err := d.learn(version, m)
		if r, ok := errors.AsType[*Rejection](err); ok {
			d.offend(r, int(m.place))
			d.discard(r.Reason, r, m.from.samples(m.to))
			ref = NoRef
		} else if own, ok := errors.AsType[*admitError](err); ok {
			return own.error
		} else if err != nil {
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		} else if ref == NoRef {
			d.discard(ReasonRelabel, nil, m.from.samples(m.to))
		}
		refused = refused || ref == NoRef
		d.Batch.Assign(m.from, m.to, ref)
	}
	if refused {
		d.Batch.sweep()
	}
	return nil
}

// learns is the most memory (bytes) that the table may need for the missed series. What is learned
// stays when its request fails, so it is charged beforehand.
func (d *decoder) learns(version Protocol) int64 {
	each := int64(costNew)
	for _, l := range d.Labels {
		each += int64(len(l.Name) + len(l.Value))
	}
	var n int64
	for _, m := range d.misses {
		n += each + int64(len(m.labels))
		if m.given != nil {
			n += int64(m.given.lset.ByteSize())
		}
		if version == V2 {
			for _, r := range m.refs {
				n += CostRef + int64(len(d.symbols.text[r]))
			}
		}
	}
	return n
}

// learn returns the series of a miss, NoRef if the rules drop it, or a *Rejection.
func (d *decoder) learn(version Protocol, m miss) (series.Ref, error) {
	g := d.Batch.Generation
	var own given
	if m.given != nil {
		own = *m.given
	}
	if own.memo != nil {
		if ref, ok := own.memo.of(g.Series.number); ok {
			return series.Ref(ref), nil
		}
	} else if ref, ok := d.table.Lookup(m.key); ok {
		return ref, nil
	} else if g.drops(m.key) {
		return NoRef, nil
	}
	var err error
	switch {
	case !own.lset.IsEmpty():
		d.ClearLabels()
		own.lset.Range(func(l labels.Label) { d.AppendLabel(series.Label{Name: l.Name, Value: l.Value}) })
	case version == V2:
		err = d.labelsV2(m.refs)
	default:
		err = d.labelsV1(m.labels)
	}
	if err != nil {
		return 0, err
	}
	if own.memo == nil {
		ref, err := d.Intern(m.key, m.raw && canonicalV1(m.labels))
		if err == nil && ref != NoRef && m.raw {
			d.table.SetLength(m.key, ref, len(m.labels))
		}
		return ref, err
	}
	ref, err := d.intern(d.table.Intern)
	if err == nil {
		own.memo.note(g.Series.number, uint32(ref))
	}
	return ref, err
}

// samples adds the samples of a TimeSeries of 1.0 at the beginning of b that are written as most
// senders do, with a value, unless it is 0, and a timestamp, in this order. It returns what
// follows.
func (d *decoder) samples(b []byte) ([]byte, error) {
	for len(b) > 2 && b[0] == 2<<3|wireBytes && int(b[1]) <= len(b)-2 {
		n := 2 + int(b[1]) // of the field; as a length of two bytes, the second one is refused below
		v, at := 0.0, 2
		if b[2] == 1<<3|wireFixed64 && n > 11 {
			v, at = double(binary.LittleEndian.Uint64(b[3:])), 11
		}
		if n < 8 || b[at] != 2<<3|wireVarint {
			break
		}
		t, ok := lastVarint(b[:n], n-at-1)
		if !ok {
			break
		}
		d.addFloat(int64(t), v, 0)
		if err := d.Reserve(0); err != nil {
			return nil, err
		}
		b = b[n:]
	}
	return b, nil
}

// sample reads a Sample: value = 1, timestamp = 2, and in 2.0 start_timestamp = 3.
func (d *decoder) sample(b []byte, version Protocol) error {
	// Most senders write the value and the timestamp, in this order, and nothing else.
	if len(b) > 10 && b[0] == 1<<3|wireFixed64 && b[9] == 2<<3|wireVarint {
		if t, n := binary.Uvarint(b[10:]); n == len(b)-10 {
			d.addFloat(int64(t), double(binary.LittleEndian.Uint64(b[1:])), 0)
			return nil
		}
	}
	var v, t, st uint64
	m := fields{rest: b}
	for m.next() {
		switch {
		case m.num == 1 && m.wire == wireFixed64:
			v = m.val
		case m.num == 2 && m.wire == wireVarint:
			t = m.val
		case m.num == 3 && version == V1:
		case m.num == 3 && m.wire == wireVarint:
			st = m.val
		case m.num <= 3:
			return errWire("Sample", m.field)
		}
	}
	if m.err == nil {
		d.addFloat(int64(t), double(v), int64(st))
	}
	return m.err
}

// exemplar reads an Exemplar: labels = 1, or in 2.0 labels_refs = 1, value = 2, timestamp = 3.
func (d *decoder) exemplar(b []byte, version Protocol) (err error) {
	var v, t uint64
	d.ClearLabels()
	d.exRefs = d.exRefs[:0]
	m := fields{rest: b}
	for err == nil && m.next() {
		switch {
		case m.num == 1 && version == V2:
			d.exRefs, err = d.appendRefs(d.exRefs, m.field)
		case m.num == 1 && m.wire == wireBytes:
			err = d.labelV1(m.data)
		case m.num == 2 && m.wire == wireFixed64:
			v = m.val
		case m.num == 3 && m.wire == wireVarint:
			t = m.val
		case m.num <= 3:
			err = errWire("Exemplar", m.field)
		}
	}
	if err = cmp.Or(err, m.err); err != nil {
		return err
	}
	if version == V2 {
		if err := d.labelsV2(d.exRefs); err != nil {
			d.rejectExemplar(err)
			return nil
		}
	}
	d.AddExemplar(int64(t), double(v), true)
	return nil
}

// View is a string of bytes that do not change while it is used.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func double(bits uint64) float64 { return math.Float64frombits(bits) }
