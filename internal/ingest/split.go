package ingest

import (
	"encoding/binary"
	"fmt"
)

// pieces is a remote-write message taken apart, to be put together again in parts. Each part is a message of its own.
type pieces struct {
	version protocol
	items   [][]byte // 1.0: the fields of the message with their tags; 2.0: the time series without
	symbols [][]byte // 2.0 only

	refs map[uint32]uint32 // 2.0: by symbol of the message, that of the part at hand
	used [][]byte          // 2.0: the symbols of the part
	item []byte
}

// errBulky reports a request that cannot be divided into messages of the queue; the answer is 413.
type errBulky struct{ msg string }

func (e *errBulky) Error() string { return e.msg }

// takeApart reads a message that the decoder has accepted.
func takeApart(version protocol, msg []byte) (*pieces, error) {
	p := &pieces{version: version}
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errMalformed, err)
		}
		switch {
		case version == protocolV1 && (f.num == 1 || f.num == 3):
			p.items = append(p.items, msg[:len(msg)-len(rest)])
		case version == protocolV2 && f.num == 4:
			p.symbols = append(p.symbols, f.data)
		case version == protocolV2 && f.num == 5:
			p.items = append(p.items, f.data)
		}
		msg = rest
	}
	return p, nil
}

// message appends to dst the message with the items [from, to).
func (p *pieces) message(dst []byte, from, to int) ([]byte, error) {
	if p.version == protocolV1 {
		for _, it := range p.items[from:to] {
			dst = append(dst, it...)
		}
		return dst, nil
	}
	p.refs, p.used = map[uint32]uint32{}, p.used[:0]
	p.symbol(0) // the empty string comes first
	for _, it := range p.items[from:to] {
		var err error
		if p.item, err = p.series(p.item[:0], it); err != nil {
			return nil, fmt.Errorf("%w: timeseries: %w", errMalformed, err)
		}
		dst = appendBytes(dst, 5, p.item)
	}
	for _, s := range p.used {
		dst = appendBytes(dst, 4, s)
	}
	return dst, nil
}

// symbol returns the part's reference for one of the message. A reference to no symbol stays one.
func (p *pieces) symbol(ref uint32) uint32 {
	if int64(ref) >= int64(len(p.symbols)) {
		return noSymbol
	}
	r, ok := p.refs[ref]
	if !ok {
		r = uint32(len(p.used))
		p.refs[ref], p.used = r, append(p.used, p.symbols[ref])
	}
	return r
}

// series appends a TimeSeries of 2.0 with the part's references: labels_refs = 1, exemplars = 4, metadata = 5.
func (p *pieces) series(dst, b []byte) ([]byte, error) {
	return p.rewrite(dst, b, func(dst []byte, f field) ([]byte, bool, error) {
		var inner []byte
		var err error
		switch f.num {
		case 1:
			dst, err = p.appendRefs(dst, f)
			return dst, true, err
		case 4: // Exemplar: labels_refs = 1
			inner, err = p.rewrite(nil, f.data, func(dst []byte, f field) ([]byte, bool, error) {
				if f.num != 1 {
					return dst, false, nil
				}
				dst, err := p.appendRefs(dst, f)
				return dst, true, err
			})
		case 5: // Metadata: help_ref = 3, unit_ref = 4
			inner, err = p.rewrite(nil, f.data, func(dst []byte, f field) ([]byte, bool, error) {
				if f.num != 3 && f.num != 4 {
					return dst, false, nil
				}
				dst = binary.AppendUvarint(dst, uint64(f.num)<<3|wireVarint)
				return binary.AppendUvarint(dst, uint64(p.symbol(uint32(f.val)))), true, nil
			})
		default:
			return dst, false, nil
		}
		return appendBytes(dst, f.num, inner), true, err
	})
}

// rewrite copies the fields of a message but for those that change writes itself.
func (p *pieces) rewrite(dst, b []byte, change func(dst []byte, f field) ([]byte, bool, error)) ([]byte, error) {
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return dst, err
		}
		var changed bool
		if dst, changed, err = change(dst, f); err != nil {
			return dst, err
		}
		if !changed {
			dst = append(dst, b[:len(b)-len(rest)]...)
		}
		b = rest
	}
	return dst, nil
}

// appendRefs appends a field of label references, packed or single, as a packed one.
func (p *pieces) appendRefs(dst []byte, f field) ([]byte, error) {
	var refs []byte
	if f.wire == wireVarint {
		refs = binary.AppendUvarint(refs, uint64(p.symbol(uint32(f.val))))
	}
	for b := f.data; len(b) > 0; {
		v, n := uvarint(b)
		if n <= 0 {
			return dst, errVarint(n)
		}
		refs, b = binary.AppendUvarint(refs, uint64(p.symbol(uint32(v)))), b[n:]
	}
	return appendBytes(dst, f.num, refs), nil
}

// appendBytes appends a length-delimited field.
func appendBytes(dst []byte, num int32, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(num)<<3|wireBytes)
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
