package model

import "slices"

// world is a scenario with values derived from it.
type world struct {
	scenario
	slotWrites [maxSlots]set // the writes whose samples the segment has
	writeSlots [maxWrites][]int
	alias      [maxWrites]set // writes with the same content
	covers     [maxDels]set   // points
}

func newWorld(sc scenario) *world {
	w := &world{scenario: sc}
	n := 0
	take := func(write, owner int) {
		if n == maxSlots {
			panic("too many segments: " + sc.name)
		}
		w.slotWrites[n] = set(0).with(owner)
		w.writeSlots[write] = append(w.writeSlots[write], n)
		n++
	}
	for i, spec := range sc.writes {
		owner := i
		if spec.same > 0 {
			owner = int(spec.same - 1)
		}
		for j := range sc.writes {
			if o := int(sc.writes[j].same) - 1; j == i || j == owner || o == i || o == owner && o >= 0 {
				w.alias[i] = w.alias[i].with(j)
			}
		}
		switch {
		case spec.mode == queued:
			for range spec.copies {
				take(i, i)
			}
		case spec.mode == direct && sc.rules.names != fresh:
			if owner == i {
				take(i, i)
			} else {
				w.writeSlots[i] = append(w.writeSlots[i], w.writeSlots[owner][0])
			}
			take(i, owner)
		default:
			take(i, owner)
		}
	}
	for _, b := range sc.batches {
		w.slotWrites[n] = b
		b.each(func(i int) { w.writeSlots[i] = append(w.writeSlots[i], n) })
		n++
	}
	for i, c := range sc.dels {
		w.covers[i] = set(c)
	}
	return w
}

func (w *world) point(write int8) int { return int(w.writes[write].point) }

func (w *world) isQueued(slot int) bool {
	return w.writes[w.slotWrites[slot].first()].mode == queued && !w.rules.unmarked && !w.rules.old.used()
}

// live returns the segments of a listing that are not consumed according to a manifest.
func (s *state) live(listing set) (live set) {
	listing.each(func(i int) {
		if !s.slots[i].consumed {
			live = live.with(i)
		}
	})
	return live
}

// listing returns the current listing of the store.
func (s *state) listing() (l set) {
	for i := range s.slots {
		if s.slots[i].present {
			l = l.with(i)
		}
	}
	return l
}

// appliesToSegment is the rule by which a tombstone deletes from a live segment.
func (w *world) appliesToSegment(s *state, t *tombstone, slot int) bool {
	g := &s.slots[slot]
	if w.rules.old.used() {
		return t.number > g.rank
	}
	if w.rules.cover == byTime {
		return g.time <= t.through
	}
	return g.sealed != 0 && g.sealed <= t.number || w.isQueued(slot) && g.time <= t.through
}

// appliesToBlock is the rule by which a tombstone deletes from a live block.
func (w *world) appliesToBlock(t *tombstone, b *block) bool {
	return t.number > b.through && (!w.rules.old.used() || t.number > b.rank)
}

// segmentValue returns the value of a segment at a point, after the tombstones of the manifest.
func (w *world) segmentValue(s *state, slot, point int) int8 {
	value := int8(none)
	w.slotWrites[slot].each(func(i int) {
		if w.point(int8(i)) == point && (value == none || s.writes[i].rank > s.writes[value-1].rank) {
			value = int8(i) + 1
		}
	})
	if value == none {
		return none
	}
	for i := range s.tombs {
		if t := &s.tombs[i]; t.present && w.covers[i].has(point) && w.appliesToSegment(s, t, slot) {
			return none
		}
	}
	return value
}

func (w *world) blockValue(s *state, b *block, point int) int8 {
	for i := range s.tombs {
		if t := &s.tombs[i]; t.present && w.covers[i].has(point) && w.appliesToBlock(t, b) {
			return none
		}
	}
	return b.value[point]
}

// seen returns the value that a reader sees that listed these segments and then read the manifest:
// of the remaining samples, the one with the highest rank.
func (w *world) seen(s *state, listing set, point int) int8 {
	value, rank := int8(none), int8(-1)
	s.live(listing).each(func(i int) {
		if v := w.segmentValue(s, i, point); v != none && s.slots[i].rank > rank {
			value, rank = v, s.slots[i].rank
		}
	})
	for i := range s.blocks {
		if b := &s.blocks[i]; b.used {
			if v := w.blockValue(s, b, point); v != none && b.rank > rank {
				value, rank = v, b.rank
			}
		}
	}
	return value
}

// source is a live object that a merge may read.
type source struct {
	isBlock bool
	i       int
	rank    int8
}

// sources returns the live objects up to a rank, ordered by rank.
func (s *state) sources(listing set, segments, blocks int8) (all []source) {
	s.live(listing).each(func(i int) {
		if s.slots[i].rank <= segments {
			all = append(all, source{false, i, s.slots[i].rank})
		}
	})
	for i := range s.blocks {
		if s.blocks[i].used && s.blocks[i].rank <= blocks {
			all = append(all, source{true, i, s.blocks[i].rank})
		}
	}
	slices.SortStableFunc(all, func(a, b source) int { return int(a.rank) - int(b.rank) })
	return all
}

// merge returns the block that a compactor makes of sources, according to the manifest that it
// read.
func (w *world) merge(s *state, sources []source) (out block) {
	out.used = true
	out.through = s.last
	for _, src := range sources { // in order of rank: the last one counts
		out.rank = src.rank
		for p := range maxPoints {
			v := int8(none)
			switch {
			case src.isBlock:
				v = w.blockValue(s, &s.blocks[src.i], p)
			default:
				v = w.segmentValue(s, src.i, p)
			}
			if w.rules.applyAll && s.anyTombstone(w, p) {
				v = none
			}
			if v != none {
				out.value[p] = v
			}
		}
	}
	return out
}

func (s *state) anyTombstone(w *world, point int) bool {
	for i := range s.tombs {
		if s.tombs[i].present && w.covers[i].has(point) {
			return true
		}
	}
	return false
}
