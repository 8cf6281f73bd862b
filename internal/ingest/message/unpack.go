package message

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// unpacker reads what packer wrote. It takes all memory that it sets aside from the builder's room.
// An unpacker is reused; one goroutine at a time uses it.
type unpacker struct {
	remotewrite.Builder
	reader
	table  *series.Table // of the batch's generation
	guess  series.Ref    // of the next series
	names  []unpackedName
	shapes []uint32     // names of all shapes
	ends   []uint32     // by shape: where its names end in shapes
	refs   []series.Ref // by number of the series
	seed   uint64
	key    []byte
	packed []byte // zstd frame
	plain  []byte // columns
}

// unpackedName is a label name and its values.
type unpackedName struct {
	name   string
	seed   uint64
	values []string
	hashes []byte // 16 bytes a value
	last   uint32 // number of the value in the last series with this name
}

var unpackers = sync.Pool{New: func() any { return new(unpacker) }}

// errRefused reports a message that breaks the consumer's limits.
var errRefused = errors.New("this consumer refuses what was accepted: give it the limits that the request was checked by")

// A message may take roomBase and roomPerByte for each byte of its columns, which are as dense as
// they can be: nine bytes are a sample.
const (
	roomBase    = 256 << 10
	roomPerByte = 64
)

// decoder unpacks frames, into no more memory than it is given.
var decoder = sync.OnceValue(func() *zstd.Decoder {
	d, _ := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true))
	return d
})

// Memory estimates the memory (bytes) that decoding the message takes, from its first line.
func (m *Message) Memory() int64 {
	const perByte = 4 // columns, label sets and dictionaries
	return int64(len(m.data)) + perByte*int64(m.Bytes) +
		remotewrite.CostFloat*int64(m.Holds.Floats) + remotewrite.CostHistogram*int64(m.Holds.Hists) + remotewrite.CostExemplar*int64(m.Holds.Exemplars)
}

// Decode turns the message into a batch of the generation g, in at most maxBytes of memory. All of
// it must be valid: an error is ErrUnreadable, or it names the limit that the message breaks.
func (m *Message) Decode(g *remotewrite.Generation, limits *remotewrite.Limits, maxBytes int64) (*remotewrite.Batch, error) {
	u := unpackers.Get().(*unpacker)
	defer u.release()
	if err := u.decompress(m); err != nil {
		return nil, err
	}
	return u.decode(u.plain, m, g, limits, maxBytes)
}

// decompress decodes the columns. It sets aside no more memory than the message announces.
func (u *unpacker) decompress(m *Message) error {
	u.packed = slices.Grow(u.packed[:0], base64.StdEncoding.DecodedLen(len(m.data)))
	packed, err := base64.StdEncoding.Strict().AppendDecode(u.packed, unsafe.Slice(unsafe.StringData(m.data), len(m.data)))
	if err != nil {
		return fmt.Errorf("%w: base64: %w", ErrUnreadable, err)
	}
	u.packed = packed
	u.plain = slices.Grow(u.plain[:0], m.Bytes)
	plain, err := decoder().DecodeAll(packed, u.plain[:0:m.Bytes])
	if err != nil {
		return fmt.Errorf("%w: zstd: %w", ErrUnreadable, err)
	}
	if len(plain) != m.Bytes {
		return fmt.Errorf("%w: zstd: %d bytes instead of %d", ErrUnreadable, len(plain), m.Bytes)
	}
	u.plain = plain
	return nil
}

func (u *unpacker) decode(columns []byte, m *Message, g *remotewrite.Generation, limits *remotewrite.Limits, maxBytes int64) (*remotewrite.Batch, error) {
	most := min(roomBase+roomPerByte*int64(len(columns)), maxBytes)
	u.Begin(g, remotewrite.Rules{Limits: limits, TimeRange: limits.TimeRange(m.Received)}, remotewrite.NewRoom(len(columns), most, most, nil))
	u.table, u.reader = g.Table, reader{b: columns}
	return u.End(u.sections(m.Holds, most))
}

// release forgets the message, whose texts lie in u.plain.
func (u *unpacker) release() {
	if cap(u.packed)+cap(u.plain) > keepBytes {
		u.packed, u.plain = nil, nil
	}
	*u = unpacker{Builder: u.Builder, packed: u.packed, plain: u.plain, key: u.key[:0]}
	unpackers.Put(u)
}

// sections reads the columns section by section.
func (u *unpacker) sections(holds remotewrite.Tally, room int64) error {
	size := len(u.b)
	for _, section := range []func() error{u.dictionaries, u.series, u.floats, u.histograms, u.exemplars, u.metadata} {
		err := section()
		if err == nil {
			err = u.err
		}
		_, refused := errors.AsType[*remotewrite.Rejection](err)
		switch {
		case refused:
			return fmt.Errorf("%w: %w", errRefused, err)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrUnreadable, err)
		case !u.Take(0):
			return fmt.Errorf("%w: its %d bytes would take more than %d bytes of memory (max-inflight-bytes, and %d for each byte)", ErrUnreadable, size, room, roomPerByte)
		case u.Batch.Err != nil:
			return fmt.Errorf("%w: %w", errRefused, u.Batch.Err)
		}
	}
	if len(u.b) > 0 {
		return fmt.Errorf("%w: %d bytes behind its end", ErrUnreadable, len(u.b))
	}
	if got := remotewrite.TallyOf(u.Batch); got != holds {
		return fmt.Errorf("%w: it holds %v instead of %v", ErrUnreadable, got, holds)
	}
	return nil
}

// dictionaries reads label names, shapes, and the values of each name.
func (u *unpacker) dictionaries() error {
	u.seed = bits.RotateLeft64(u.table.Seed(), 32) // other than those of 1.0 and 2.0 keys, whose bytes mean something else
	names := u.count(1)
	if !u.Take(remotewrite.CostSymbol * int64(2*names)) {
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
		if !u.Take(remotewrite.CostRef * int64(n+1)) {
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
	if !u.Take(remotewrite.CostSymbol * int64(count)) {
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
	out := u.Batch
	runs := u.count(2)
	expected := uint64(0)
	for range runs {
		ref := u.seriesRef(&expected)
		n := u.count(9)
		if !u.Take(remotewrite.CostFloat*int64(n)) || u.err != nil {
			return nil
		}
		for range n {
			out.Floats = append(out.Floats, remotewrite.Float{Ref: ref})
		}
	}
	t := int64(0)
	for i := range out.Floats {
		t += u.varint()
		if err := u.TimeRange.Check(t); err != nil && u.err == nil {
			return err
		}
		out.Floats[i].T = t
		out.See(t)
	}
	for i := range out.Floats {
		out.Floats[i].V = math.Float64frombits(u.fixed64())
	}
	if u.below(2) == 0 {
		return nil
	}
	out.Starts = make([]int64, len(out.Floats))
	st := int64(0)
	for i := range out.Starts {
		st += u.varint()
		if err := u.TimeRange.CheckStart(st); err != nil && u.err == nil {
			return err
		}
		out.Starts[i] = st
	}
	return nil
}

// seriesRef reads which series comes next.
func (u *unpacker) seriesRef(expected *uint64) series.Ref {
	n := *expected + uint64(u.varint())
	*expected = n + 1
	if n >= uint64(len(u.refs)) {
		u.fail("series number %d of %d", int64(n), len(u.refs))
		return remotewrite.NoRef
	}
	return u.refs[n]
}

func (u *unpacker) histograms() error {
	expected := uint64(0)
	for range u.count(2) {
		from := u.Batch.Mark()
		ref := u.seriesRef(&expected)
		b := u.bytes()
		if u.err != nil {
			return nil
		}
		if err := u.AddHistogram(b); err != nil {
			return err
		}
		u.Batch.Assign(from, u.Batch.Mark(), ref)
	}
	return nil
}

func (u *unpacker) exemplars() error {
	expected, t := uint64(0), int64(0)
	for range u.count(11) {
		from := u.Batch.Mark()
		ref := u.seriesRef(&expected)
		t += u.varint()
		v := math.Float64frombits(u.fixed64())
		u.ClearLabels()
		for range u.count(2) {
			name := u.text()
			u.AppendLabel(series.Label{Name: name, Value: u.text()})
		}
		if u.err != nil || !u.Take(0) {
			return nil
		}
		u.AddExemplar(t, v, true)
		u.Batch.Assign(from, u.Batch.Mark(), ref)
	}
	return nil
}

func (u *unpacker) metadata() error {
	for range u.count(4) {
		m := segment.Metadata{Metric: u.text(), Type: u.text(), Help: u.text(), Unit: u.text()}
		if u.err != nil || !u.Take(0) {
			return nil
		}
		u.AddMetadata(m)
	}
	return nil
}
