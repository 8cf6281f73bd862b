package catalog

import (
	"bytes"
	"encoding"
)

// plain reads the JSON of a manifest as Encode writes it. encoding/json takes five times as long,
// and the first query of a process waits for it. It fails at any difference, and at the lists that
// few manifests have.
type plain struct {
	rest   []byte
	failed bool
}

// decodePlain decodes a manifest with a checksum, which is not verified. It reports whether that is
// as Encode writes it.
func decodePlain(b []byte) (Manifest, bool) {
	var m Manifest
	p := &plain{rest: b}
	m.Version = int(p.number(`{"version":`))
	m.Generation = p.count(`,"generation":`)
	p.text(`,"id":"`, &m.ID)
	p.text(`,"parent":"`, &m.Parent)
	p.text(`,"last_tombstone":"`, &m.LastTombstone)
	m.Oldest.Generation = p.count(`,"oldest":{"generation":`)
	p.text(`,"id":"`, &m.Oldest.ID)
	m.Oldest.At = p.maybe(`,"at":`)
	m.Oldest.Raised = uint64(p.maybe(`,"raised":`))
	p.must(`}`)
	m.Blocks = plainList(p, `,"blocks":[`, p.block)
	m.Consumed = plainList(p, `,"consumed":[`, p.consumed)
	m.Retired = plainList(p, `,"retired":[`, p.retired)
	p.must(`,"crc32c":"`)
	p.word()
	p.must(`}`)
	return m, !p.failed && m.Version == ManifestVersion && len(bytes.TrimRight(p.rest, "\n")) == 0
}

func (p *plain) block(b *Block) {
	p.text(`{"level":"`, &b.Level)
	p.text(`,"window":"`, &b.Window)
	p.text(`,"id":"`, &b.ID)
	p.text(`,"rank":"`, &b.Rank)
	p.text(`,"deletes_through":"`, &b.DeletesThrough)
	b.MinT, b.MaxT = p.number(`,"min_t":`), p.number(`,"max_t":`)
	b.Series, b.Samples, b.Bytes = p.number(`,"series":`), p.number(`,"samples":`), p.number(`,"bytes":`)
	p.must(`}`) // a slice is rare
}

func (p *plain) consumed(c *Consumed) {
	p.text(`{"window":"`, &c.Window)
	p.text(`,"id":"`, &c.ID)
	c.Queued = p.is(`,"queued":true`)
	c.At, c.Generation, c.Gone = p.number(`,"at":`), p.count(`,"generation":`), uint64(p.maybe(`,"gone":`))
	p.must(`}`)
}

func (p *plain) retired(r *Retired) {
	p.text(`{"level":"`, &r.Level)
	p.text(`,"window":"`, &r.Window)
	p.text(`,"id":"`, &r.ID)
	r.At, r.Generation, r.Gone = p.number(`,"at":`), p.count(`,"generation":`), uint64(p.maybe(`,"gone":`))
	p.must(`}`)
}

// plainList reads a list with elements, if begin stands next.
func plainList[T any](p *plain, begin string, element func(*T)) (out []T) {
	if !p.is(begin) {
		return nil
	}
	for more := true; more && !p.failed; more = p.is(`,`) {
		var v T
		element(&v)
		out = append(out, v)
	}
	p.must(`]`)
	return out
}

// is skips a text if it stands next.
func (p *plain) is(text string) bool {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		return false
	}
	p.rest = p.rest[len(text):]
	return true
}

func (p *plain) must(text string) { p.failed = !p.is(text) || p.failed }

// word returns the letters and digits that stand next, and skips them and the quotation mark that
// must follow.
func (p *plain) word() []byte {
	n := 0
	for n < len(p.rest) && ('0' <= p.rest[n] && p.rest[n] <= '9' || 'A' <= p.rest[n] && p.rest[n] <= 'Z' || 'a' <= p.rest[n] && p.rest[n] <= 'z') {
		n++
	}
	text := p.rest[:n]
	p.rest = p.rest[n:]
	p.must(`"`)
	return text
}

// text reads a string after begin, which ends with its quotation mark.
func (p *plain) text(begin string, v encoding.TextUnmarshaler) {
	p.must(begin)
	if text := p.word(); !p.failed {
		p.failed = v.UnmarshalText(text) != nil
	}
}

// maybe reads a number after begin, 0 if begin does not stand next.
func (p *plain) maybe(begin string) int64 {
	if !p.is(begin) {
		return 0
	}
	p.failed = p.is(`-`) || p.failed
	return p.number(``)
}

// count reads a number after begin that is not negative.
func (p *plain) count(begin string) uint64 {
	n := p.number(begin)
	p.failed = n < 0 || p.failed
	return uint64(n)
}

// number reads an integer of at most 18 digits after begin.
func (p *plain) number(begin string) (n int64) {
	p.must(begin)
	negative, digits := p.is(`-`), 0
	for digits < len(p.rest) && '0' <= p.rest[digits] && p.rest[digits] <= '9' {
		n = 10*n + int64(p.rest[digits]-'0')
		digits++
	}
	const exact = 18 // more may not fit
	p.failed = p.failed || digits == 0 || digits > exact || digits > 1 && p.rest[0] == '0'
	p.rest = p.rest[digits:]
	if negative {
		return -n
	}
	return n
}
