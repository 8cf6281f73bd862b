package fetch

import "context"

// claims are the files that a call needs of one object.
type claims struct {
	pinned  []*file // complete
	pending []*file // other calls are fetching them
	work    *work   // the file that this call must fetch; nil: none
}

// claimWhole claims a file that is a copy of the object.
func (c *Cache) claimWhole(key string, size int64) (out claims, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.objects[key] {
		switch {
		case !f.whole:
		case f.entry != nil:
			c.pin(f)
			out.pinned = append(out.pinned, f)
		default:
			out.pending = append(out.pending, f)
		}
	}
	if len(out.pinned)+len(out.pending) > 0 {
		c.countLookup(kindWhole, &out)
		return out, nil
	}
	c.meter.CountLookup(kindWhole, false)
	f := &file{whole: true, object: size, size: size}
	if size > 0 {
		f.pieces = []*piece{{span: Span{Length: size}}}
	}
	out.work, err = c.begin(key, f)
	return out, err
}

// claimParts claims files that contain spans of an object. Bytes that none of them contains become
// a new file.
func (c *Cache) claimParts(key string, size int64, spans []Span) (out claims, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	left := uncovered(spans, nil)
	for _, complete := range []bool{true, false} {
		for _, f := range c.objects[key] {
			if (f.entry != nil) != complete || len(left) == 0 {
				continue
			}
			rest := uncovered(left, []*file{f})
			switch {
			case !f.whole && total(rest) == total(left):
				continue
			case f.whole:
				rest = nil // its size may be unknown
			}
			if left = rest; complete {
				c.pin(f)
				out.pinned = append(out.pinned, f)
			} else {
				out.pending = append(out.pending, f)
			}
		}
	}
	if len(left) == 0 {
		c.countLookup(kindChunks, &out)
		return out, nil
	}
	c.meter.CountLookup(kindChunks, false)
	f := &file{object: size, pieces: pieces(left)}
	var at int64
	for _, p := range f.pieces {
		p.at = at
		at += p.span.Length
	}
	f.size = at
	if out.work, err = c.begin(key, f); err != nil {
		for _, f := range out.pinned {
			f.entry.Pins--
		}
		return claims{}, err
	}
	return out, nil
}

// countLookup counts a lookup for which nothing has to be fetched: a hit, unless other calls are
// still fetching.
func (c *Cache) countLookup(kind string, cl *claims) {
	if len(cl.pending) == 0 {
		c.meter.CountLookup(kind, true)
	}
}

// settle fetches the file that this call must fetch and waits for those of other calls. If needed,
// the file is in memory when the disk has no room. The caller owns the pins of pinned, even after
// an error.
func (c *Cache) settle(ctx context.Context, cl claims, s slots, needed bool) (pinned []*file, err error) {
	pinned = cl.pinned
	if w := cl.work; w != nil {
		if err := c.finish(w, w.make(ctx, s, needed)); err != nil {
			return pinned, err
		}
		pinned = append(pinned, w.file)
	}
	for _, f := range cl.pending {
		if err := wait(ctx, f.done); err != nil {
			return pinned, err
		}
		if f.err != nil && !contextEnded(f.err) && (!needed || !isFull(f.err)) {
			return pinned, f.err
		}
	}
	return pinned, nil
}
