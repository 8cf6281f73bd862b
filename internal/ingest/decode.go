package ingest

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/series"
)

// decoder turns one remote-write message into a batch. It walks the bytes in place: a series whose label bytes were seen before
// costs a hash and a look-up; only an unknown one is parsed, checked and interned. A decoder is reused; it belongs to one goroutine at a time.
//
// A malformed message fails as a whole (nothing of it is kept). A message that breaks a rule for some series keeps the others; the first
// offence is in batch.err.
type decoder struct {
	limits *Limits
	gen    *generation
	hor    horizon
	out    *batch
	guess  series.Ref // of the next series
	queues bool       // what is decoded goes to the queue
	noted  *descriptions
	quiet  bool // what is refused is not counted

	message    int               // bytes of the message
	most       int64             // bytes that reading it may take
	granted    int64             // bytes that it may take for now
	room       int64             // bytes that are left of that
	grow       func(int64) error // asks for more to be granted
	maxWindows int               // windows that the message may touch; 0: any number

	misses  []miss
	labels  []series.Label
	joined  []byte // label fields of a series that are not adjacent
	symbols symbols
	refs    []uint32 // label references of the current series (2.0)
	exRefs  []uint32 // label references of the current exemplar (2.0)
	arena   []uint32 // label references of missed series (2.0)
	scratch labels.ScratchBuilder
}

// miss is a series that was not known when its samples were read.
type miss struct {
	key    series.Key
	labels []byte // label fields as they stand in the message (1.0)
	refs   []uint32
	from   mark
	to     mark
}

// errMalformed marks messages that cannot be read at all.
var errMalformed = errors.New("malformed remote-write message")

// decode reads msg into a new batch of the generation g. begin was called.
func (d *decoder) decode(version protocol, msg []byte, g *generation, hor horizon) (*batch, error) {
	d.gen, d.hor, d.out, d.noted = g, hor, newBatch(g), &g.stored
	if d.queues {
		d.noted = &g.queued
	}
	err := d.walk(version, msg)
	if err == nil && len(d.misses) > 0 {
		err = d.resolve(version)
	}
	if err == nil {
		err = d.checkWindows()
	}
	out := d.out
	d.forget()
	if err != nil {
		out.release()
		return nil, err
	}
	return out, nil
}

// walk reads the message; what series it could not find are in d.misses.
func (d *decoder) walk(version protocol, msg []byte) error {
	d.gen.table.RLock()
	defer d.gen.table.RUnlock()
	walk := d.walkV1
	if version == protocolV2 {
		walk = d.walkV2
	}
	err := walk(msg)
	var dense *errDense
	var busy *errBusy
	if err == nil || errors.As(err, &dense) || errors.As(err, &busy) {
		return err
	}
	return fmt.Errorf("%w: %w", errMalformed, err)
}

// checkWindows bounds the 2h windows that a request may touch: each costs an object in the store.
func (d *decoder) checkWindows() error {
	if d.maxWindows == 0 {
		return nil
	}
	n := d.out.windows(d.maxWindows)
	if n <= d.maxWindows {
		return nil
	}
	d.discard(reasonWindows, d.out.samples())
	return rejectf(reasonWindows, "the request's samples lie in %d windows of 2h, the limit is %d (max-windows-per-request): nothing of it was stored, send it in parts of fewer days",
		n, d.maxWindows)
}

// keepMisses is the number of unknown series of a message above which the decoder's buffers are not kept for the next one.
const keepMisses = 16 << 10

// forget drops all that refers to the message, its batch and its generation.
func (d *decoder) forget() {
	d.out, d.gen, d.noted, d.grow = nil, nil, nil, nil
	if cap(d.misses) > keepMisses || cap(d.arena) > 16*keepMisses || cap(d.symbols.text) > keepMisses {
		d.misses, d.arena, d.symbols = nil, nil, symbols{}
	}
	clear(d.misses)
	clear(d.labels[:cap(d.labels)])
	clear(d.symbols.text)
	d.misses, d.arena, d.symbols.text = d.misses[:0], d.arena[:0], d.symbols.text[:0]
}

// known gives the samples since a mark to the series with this key, or notes that it is not known yet. The caller holds the
// table's read lock.
func (d *decoder) known(k series.Key, from mark) bool {
	ref, ok := d.gen.table.LookupNear(k, d.guess)
	if ok {
		d.guess = ref + 1
		d.out.assign(from, d.out.mark(), ref)
	}
	return ok
}

// resolve interns the missed series and sweeps away what belongs to refused ones.
func (d *decoder) resolve(version protocol) error {
	t := d.gen.table
	t.Lock()
	defer t.Unlock()
	known, learned := t.Bytes(), d.learns(version)
	d.most += learned // what is learned says nothing about how dense the message is; the limit of all bytes in flight still holds
	if err := d.reserve(learned); err != nil {
		return err
	}
	defer func() { d.room -= min(max(t.Bytes()-known, 0), learned) }()
	swept := false
	for _, m := range d.misses {
		ref, ok := t.Lookup(m.key)
		if !ok {
			var err error
			if ref, err = d.intern(version, m); err != nil {
				var r *Rejection
				if !errors.As(err, &r) {
					return fmt.Errorf("%w: %w", errMalformed, err)
				}
				d.out.reject(err)
				d.discard(r.Reason, m.to.floats-m.from.floats+m.to.hists-m.from.hists)
				ref, swept = noRef, true
			}
		}
		if ref == noRef {
			d.refuse(m)
			continue
		}
		d.out.assign(m.from, m.to, ref)
	}
	if swept {
		d.out.sweep()
	}
	return nil
}

// learns is the most memory that the table may need for the missed series. What is learned stays
// when its request fails, so it is charged before that.
func (d *decoder) learns(version protocol) int64 {
	var n int64
	for _, m := range d.misses {
		n += costNew + int64(len(m.labels))
		if version == protocolV2 {
			for _, r := range m.refs {
				n += costRef + int64(len(d.symbols.text[r]))
			}
		}
	}
	return n
}

// discard counts refused samples.
func (d *decoder) discard(r reason, samples int) {
	if !d.quiet {
		d.gen.discard(r, samples)
	}
}

func (d *decoder) refuse(m miss) {
	for i := m.from.floats; i < m.to.floats; i++ {
		d.out.floats[i].ref = noRef
	}
	for i := m.from.hists; i < m.to.hists; i++ {
		d.out.hists[i].ref = noRef
	}
	for i := m.from.exemplars; i < m.to.exemplars; i++ {
		d.out.exemplars[i].ref = noRef
	}
}

func (d *decoder) intern(version protocol, m miss) (series.Ref, error) {
	var err error
	if version == protocolV2 {
		err = d.labelsV2(m.refs)
	} else {
		err = d.labelsV1(m.labels)
	}
	if err != nil {
		return 0, err
	}
	lset, err := d.limits.checkLabels(d.labels)
	if err != nil {
		return 0, err
	}
	ref, err := d.gen.table.Intern(lset)
	if err != nil {
		return 0, fmt.Errorf("intern series: %w", err)
	}
	d.gen.table.Alias(m.key, ref)
	return ref, nil
}

// appendLabel adds to d.labels, of which one more than the limit is enough to refuse them.
func (d *decoder) appendLabel(l series.Label) {
	if len(d.labels) <= d.limits.MaxLabelNames {
		d.labels = append(d.labels, l)
	}
}

// text views bytes as a string; it lives no longer than the message.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func double(bits uint64) float64 { return math.Float64frombits(bits) }
