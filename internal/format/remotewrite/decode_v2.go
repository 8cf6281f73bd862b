package remotewrite

import (
	"encoding/binary"
	"fmt"

	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/series"
)

// symbols is the string table of a remote-write 2.0 request.
type symbols struct {
	text   []string // in place in the message
	hashes []byte   // 16 bytes a symbol
	key    []byte   // hashes of the current series' labels
}

// walkV2 decodes an io.prometheus.write.v2.Request: symbols = 4, timeseries = 5. The symbols may be
// anywhere in the message, so they are read first.
func (d *decoder) walkV2(msg []byte) error {
	s := &d.symbols
	s.text, s.hashes = s.text[:0], s.hashes[:0]
	seed := ^d.seed // other than that of 1.0 keys, whose bytes mean something else
	m := fields{rest: msg}
	for m.next() {
		if (m.num == 4 || m.num == 5) && m.wire != wireBytes {
			return errWire("Request", m.field)
		}
		if m.num == 4 {
			d.left -= CostSymbol
			if err := d.Reserve(0); err != nil {
				return err
			}
			h := xxh3.Hash128Seed(m.data, seed)
			s.text = append(s.text, View(m.data))
			s.hashes = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(s.hashes, h.Lo), h.Hi)
		}
	}
	if m.err != nil {
		return m.err
	}
	if len(s.text) > 0 && s.text[0] != "" {
		return fmt.Errorf("the first symbol must be the empty string, is %s", Quote(s.text[0]))
	}
	last := family{metric: noSymbol}
	for m = (fields{rest: msg}); m.next(); {
		if m.num == 5 {
			if err := d.seriesV2(m.data, seed, &last); err != nil {
				return fmt.Errorf("timeseries: %w", err)
			}
		}
		if err := d.Reserve(0); err != nil {
			return err
		}
	}
	return m.err
}

// seriesV2 decodes an io.prometheus.write.v2.TimeSeries: labels_refs = 1, samples = 2, histograms =
// 3, exemplars = 4, metadata = 5.
func (d *decoder) seriesV2(b []byte, seed uint64, last *family) error {
	from := d.Batch.Mark()
	empty := true
	d.refs = d.refs[:0]
	var meta []byte
	joined := false // meta is not part of the message
	m := fields{rest: b}
	for m.next() {
		var err error
		empty = empty && (m.num < 2 || m.num > 4)
		switch {
		case m.num == 1:
			d.refs, err = d.appendRefs(d.refs, m.field)
		case m.num >= 2 && m.num <= 5 && m.wire != wireBytes:
			err = errWire("TimeSeries", m.field)
		case m.num == 2:
			err = d.sample(m.data, V2)
		case m.num == 3:
			err = d.AddHistogram(m.data)
		case m.num == 4:
			err = d.exemplar(m.data, V2)
		case m.num == 5 && meta == nil:
			meta = m.data
		case m.num == 5:
			// Fields that are repeated are merged, which means to read them one after another.
			if !joined {
				meta, joined = append([]byte(nil), meta...), true
			}
			d.left -= int64(len(m.data))
			meta = append(meta, m.data...)
		}
		if err != nil {
			return err
		}
		if err := d.Reserve(0); err != nil {
			return err
		}
	}
	if m.err != nil {
		return m.err
	}
	// The specification requires a sample or a histogram in every series, but Prometheus sends each
	// exemplar in a series of its own.
	if empty {
		d.reject(rejectf(ReasonNoSamples, "a series must have at least one sample, histogram or exemplar"), 0)
		return nil
	}
	to := d.Batch.Mark()
	k, ok := d.keyV2(seed)
	if !ok || len(d.refs)%2 != 0 {
		d.Batch.cut(from)
		d.reject(rejectf(ReasonSymbolRef, "label references %v: odd in number or beyond the %d symbols", d.refs[:min(len(d.refs), 64)], len(d.symbols.text)),
			from.samples(to))
		return nil
	}
	if !d.known(k, from) {
		at := len(d.arena)
		d.arena = append(d.arena, d.refs...)
		d.left -= costSeries + CostRef*int64(len(d.refs))
		d.misses = append(d.misses, miss{key: k, refs: d.arena[at:len(d.arena):len(d.arena)], from: from, to: to})
	}
	if meta != nil {
		return d.metadataV2(meta, last)
	}
	return nil
}

// keyV2 hashes the hashes of the symbols that d.refs names.
func (d *decoder) keyV2(seed uint64) (series.Key, bool) {
	s := &d.symbols
	s.key = s.key[:0]
	for _, r := range d.refs {
		if int(r) >= len(s.text) {
			return series.Key{}, false
		}
		at := 16 * int(r)
		s.key = append(s.key, s.hashes[at:at+16]...)
	}
	return xxh3.Hash128Seed(s.key, seed), true
}

// appendRefs reads a packed or single uint32 field.
func (d *decoder) appendRefs(refs []uint32, f field) ([]uint32, error) {
	// A reference takes at least one byte. The next series uses the same memory again, so the
	// bytes are reserved but not taken.
	if err := d.Reserve(CostRef * int64(len(refs)+max(1, len(f.data)))); err != nil {
		return refs, err
	}
	if f.wire == wireVarint {
		return append(refs, uint32(f.val)), nil
	}
	if f.wire != wireBytes {
		return refs, errWire("symbol references", f)
	}
	for b := f.data; len(b) > 0; {
		v, n := uint64(b[0]), 1
		switch {
		case b[0] < 0x80:
		case len(b) > 1 && b[1] < 0x80:
			v, n = v&0x7f|uint64(b[1])<<7, 2
		default:
			if v, n = binary.Uvarint(b); n <= 0 {
				return refs, fmt.Errorf("symbol references: %w", errVarint(n))
			}
		}
		refs = append(refs, uint32(v))
		b = b[n:]
	}
	return refs, nil
}

// labelsV2 resolves label references into d.labels.
func (d *decoder) labelsV2(refs []uint32) error {
	d.ClearLabels()
	if len(refs)%2 != 0 {
		return rejectf(ReasonSymbolRef, "%d label references, must be even", len(refs))
	}
	for i := 0; i < len(refs); i += 2 {
		name, okName := d.symbols.at(refs[i])
		val, okValue := d.symbols.at(refs[i+1])
		if !okName || !okValue {
			return rejectf(ReasonSymbolRef, "label references %d, %d of %d symbols", refs[i], refs[i+1], len(d.symbols.text))
		}
		d.AppendLabel(series.Label{Name: name, Value: val})
	}
	return nil
}

func (s *symbols) at(ref uint32) (string, bool) {
	if int(ref) >= len(s.text) {
		return "", false
	}
	return s.text[ref], true
}
