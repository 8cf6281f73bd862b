package ingest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
)

// unpacker reads what packer wrote. All that it sets aside is charged to the decoder's room.
type unpacker struct {
	*decoder
	reader
	names  []unpackedName
	shapes []uint32     // names of all shapes
	ends   []uint32     // by shape: where its names end in shapes
	refs   []series.Ref // by number of the series
	seed   uint64
	key    []byte
}

// unpackedName is a label name and its values.
type unpackedName struct {
	name   string
	seed   uint64
	values []string
	hashes []byte // 16 bytes a value
	last   uint32 // number of the value of the last series with this name
}

// errRefused reports a message with something in it that the consumer's limits do not allow.
var errRefused = errors.New("this consumer refuses what was accepted: give it the limits that the request was checked by")

// unpack reads the columns of a message into a new batch of the generation g. All of it must be valid.
func (d *decoder) unpack(msg []byte, want tally, g *generation, hor horizon) (*batch, error) {
	d.gen, d.hor, d.out, d.noted, d.quiet = g, hor, newBatch(g), &g.stored, true
	u := unpacker{decoder: d, reader: reader{b: msg}}
	err := u.all(want)
	out := d.out
	d.quiet = false
	d.forget()
	if err != nil {
		out.release()
		return nil, err
	}
	return out, nil
}

func (u *unpacker) all(want tally) error {
	for _, section := range []func() error{u.dictionaries, u.series, u.floats, u.histograms, u.exemplars, u.metadata} {
		err := section()
		if err == nil {
			err = u.err
		}
		var r *Rejection
		switch {
		case errors.As(err, &r):
			return fmt.Errorf("%w: %w", errRefused, err)
		case err != nil:
			return fmt.Errorf("%w: %w", errUnreadable, err)
		case u.room < 0:
			return fmt.Errorf("%w: its %d bytes would take more than %d bytes of memory (max-inflight-bytes, and %d for each byte)", errUnreadable, u.message, u.granted, roomPerPacked)
		case u.out.err != nil:
			return fmt.Errorf("%w: %w", errRefused, u.out.err)
		}
	}
	if len(u.b) > 0 {
		return fmt.Errorf("%w: %d bytes behind its end", errUnreadable, len(u.b))
	}
	if got := tallyOf(u.out); got != want {
		return fmt.Errorf("%w: it holds %v instead of %v", errUnreadable, got, want)
	}
	return nil
}

// dictionaries reads label names, shapes, and the values of each name.
func (u *unpacker) dictionaries() error {
	u.seed = bits.RotateLeft64(u.gen.table.Seed(), 32) // other than those of 1.0 and 2.0 keys, whose bytes mean something else
	names := u.count(1)
	if u.room -= costSymbol * int64(2*names); u.room < 0 {
		return nil
	}
	u.names = make([]unpackedName, names)
	for i := range u.names {
		name := u.text()
		u.names[i].name, u.names[i].seed = name, xxh3.HashStringSeed(name, u.seed)
	}
	shapes := u.count(1)
	for range shapes {
		n := u.count(1)
		if u.room -= costRef * int64(n+1); u.room < 0 {
			return nil
		}
		for range n {
			u.shapes = append(u.shapes, uint32(u.below(names)))
		}
		u.ends = append(u.ends, uint32(len(u.shapes)))
	}
	for i := range u.names {
		if !u.values(&u.names[i]) {
			return nil
		}
	}
	return nil
}

func (u *unpacker) values(n *unpackedName) bool {
	count := u.count(1)
	if u.room -= costSymbol * int64(count); u.room < 0 {
		return false
	}
	n.values, n.hashes = make([]string, count), make([]byte, 0, 16*count)
	for i := range n.values {
		v := u.text()
		h := xxh3.HashString128Seed(v, n.seed)
		n.values[i] = v
		n.hashes = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(n.hashes, h.Lo), h.Hi)
	}
	return u.err == nil
}

// floats reads the runs of float samples, their times, values and start timestamps.
func (u *unpacker) floats() error {
	out := u.out
	runs := u.count(2)
	expected := uint64(0)
	for range runs {
		ref := u.seriesRef(&expected)
		n := u.count(9)
		if u.room -= costFloat * int64(n); u.room < 0 || u.err != nil {
			return nil
		}
		for range n {
			out.floats = append(out.floats, floatSample{ref: ref})
		}
	}
	t := int64(0)
	for i := range out.floats {
		t += u.varint()
		if err := u.hor.check(t); err != nil && u.err == nil {
			return err
		}
		out.floats[i].t = t
		out.see(t)
	}
	for i := range out.floats {
		out.floats[i].v = double(u.fixed64())
	}
	if u.below(2) == 0 {
		return nil
	}
	out.starts = make([]int64, len(out.floats))
	st := int64(0)
	for i := range out.starts {
		st += u.varint()
		if err := u.hor.checkStart(st); err != nil && u.err == nil {
			return err
		}
		out.starts[i] = st
	}
	return nil
}

// seriesRef reads which series comes next.
func (u *unpacker) seriesRef(expected *uint64) series.Ref {
	n := *expected + uint64(u.varint())
	*expected = n + 1
	if n >= uint64(len(u.refs)) {
		u.fail("series number %d of %d", int64(n), len(u.refs))
		return noRef
	}
	return u.refs[n]
}

func (u *unpacker) histograms() error {
	expected := uint64(0)
	for range u.count(2) {
		from := u.out.mark()
		ref := u.seriesRef(&expected)
		b := u.bytes()
		if u.err != nil {
			return nil
		}
		if err := u.addHistogram(b); err != nil {
			return err
		}
		u.out.assign(from, u.out.mark(), ref)
	}
	return nil
}

func (u *unpacker) exemplars() error {
	expected, t := uint64(0), int64(0)
	for range u.count(11) {
		from := u.out.mark()
		ref := u.seriesRef(&expected)
		t += u.varint()
		v := double(u.fixed64())
		u.labels = u.labels[:0]
		for range u.count(2) {
			name := u.text()
			u.appendLabel(series.Label{Name: name, Value: u.text()})
		}
		if u.err != nil || u.room < 0 {
			return nil
		}
		u.addExemplar(t, v)
		u.out.assign(from, u.out.mark(), ref)
	}
	return nil
}

func (u *unpacker) metadata() error {
	for range u.count(4) {
		m := segment.Metadata{Metric: u.text(), Type: u.text(), Help: u.text(), Unit: u.text()}
		if u.err != nil || u.room < 0 {
			return nil
		}
		u.addMetadata(m)
	}
	return nil
}
