package model

// promised is the writes and deletions that a reader may rely on when it begins.
type promised struct {
	// acknowledged and in the store at least once: readers need not see a message that is only on
	// the queue
	writes  set
	deleted set // acknowledged deletions
}

func (w *world) promised(s *state) (p promised) {
	for i := range w.writes {
		arrived := w.writes[i].mode != queued
		for _, g := range w.writeSlots[i] {
			arrived = arrived || s.slots[g].used()
		}
		if s.writes[i].phase == done && arrived {
			p.writes = p.writes.with(i)
		}
	}
	p.deleted = s.acknowledgedDeletions()
	return p
}

func (s *state) acknowledgedWrites() (l set) {
	for i := range s.writes {
		if s.writes[i].phase == done {
			l = l.with(i)
		}
	}
	return l
}

func (s *state) acknowledgedDeletions() (l set) {
	for i := range s.dels {
		if s.dels[i].phase == done {
			l = l.with(i)
		}
	}
	return l
}

// judge compares the samples that a reader sees with the promised ones, only by the order of
// acknowledgements and beginnings. A value is right if it is right for one of the writes with that
// content.
func (w *world) judge(s *state, listing set, p promised) breach {
	for point := range maxPoints {
		v := w.seen(s, listing, point)
		if v == none {
			if b := w.missing(s, p, point); b.promise != 0 {
				return b
			}
			continue
		}
		worst := breach{}
		for i := range w.writes {
			if !w.alias[v-1].has(i) || s.writes[i].phase == idle {
				continue
			}
			if worst = w.wrong(s, p, i); worst.promise == 0 {
				break
			}
		}
		if worst.promise != 0 {
			return worst
		}
	}
	return breach{}
}

// missing judges a point without a visible sample: a deletion must possibly cover every promised
// write.
func (w *world) missing(s *state, p promised, point int) (b breach) {
	p.writes.each(func(i int) {
		if w.point(int8(i)) != point {
			return
		}
		for d := range w.dels {
			if s.dels[d].phase >= committed && w.covers[d].has(point) && !s.writes[i].after.has(d) {
				return
			}
		}
		b = breach{2, int8(i), int8(point)}
	})
	return b
}

// wrong judges whether a write may be visible.
func (w *world) wrong(s *state, p promised, write int) (b breach) {
	point := w.point(int8(write))
	p.deleted.each(func(d int) {
		if w.covers[d].has(point) && s.dels[d].begin.has(write) {
			b = breach{1, int8(write), int8(d)}
		}
	})
	p.writes.without(s.passed).each(func(i int) {
		if w.point(int8(i)) == point && s.writes[i].prior.has(write) && b.promise == 0 {
			b = breach{3, int8(write), int8(i)}
		}
	})
	if b.promise == 0 && s.deleted.has(write) {
		b = breach{5, int8(write), int8(point)}
	}
	return b
}

// remember records the samples that readers saw: deleted ones must not reappear, and samples that
// were visible after a deletion were not deleted by it.
func (w *world) remember(s *state) {
	l, p := s.listing(), w.promised(s)
	for point := range maxPoints {
		v := w.seen(s, l, point)
		if v != none {
			for d := range w.dels {
				if s.dels[d].phase >= committed && w.covers[d].has(point) {
					s.writes[v-1].after = s.writes[v-1].after.with(d)
				}
			}
			continue
		}
		p.writes.each(func(i int) {
			if w.point(int8(i)) == point {
				s.deleted = s.deleted.with(i)
			}
		})
	}
}
