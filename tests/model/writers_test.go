package model

import "math"

// readings returns the possible readings of a machine clock in the old protocol's unit of ranks.
func (s *state) readings(offsets []int8) (all []int8) {
	for _, o := range offsets {
		if r := s.now + o; r >= 0 {
			all = append(all, r)
		}
	}
	return all
}

// Ranks of the old protocol are milliseconds, with room for tombstones of the same millisecond
// above the segments.
const oldUnit = 4

// Coarse ranks have room for the names of as many writes within one tick.
const coarseUnit = 3

func (s *state) taken(rank int8) bool {
	for i := range s.writes {
		if s.writes[i].phase != idle && s.writes[i].rank == rank {
			return true
		}
	}
	return false
}

// putRanks returns the ranks that a segment put now may get.
func (w *world) putRanks(s *state) []int8 {
	switch {
	case w.rules.old.used():
		var ranks []int8
		for _, r := range s.readings(w.rules.old.writers) {
			ranks = append(ranks, oldUnit*r)
		}
		return ranks
	case w.rules.coarse: // names are unique
		var ranks []int8
		for name := range int8(coarseUnit) {
			if r := coarseUnit*s.now + name; !s.taken(r) {
				ranks = append(ranks, r)
			}
		}
		return ranks
	default:
		return []int8{s.order + 1}
	}
}

// put adds slot to the store as a segment.
func (n *state) put(i int, rank, time int8) {
	g := &n.slots[i]
	g.present, g.rank, g.time = true, rank, time
	n.order++
}

// stamp returns a segment's time, if it matters.
func (w *world) stamp(s *state) int8 {
	if w.rules.cover == byTime || w.rules.coarse || w.rules.old.used() {
		return s.now
	}
	return 0
}

func (w *world) begin(n *state, i int) {
	n.writes[i].prior, n.writes[i].after = n.acknowledgedWrites(), n.acknowledgedDeletions()
	n.writes[i].sent = w.stamp(n)
	if (w.rules.coarse || w.rules.old.used()) && !w.rules.tied {
		n.writes[i].prior = n.putBefore(n.now)
	}
}

// putBefore returns the acknowledged writes that were put or sent before a time.
func (s *state) putBefore(time int8) (l set) {
	s.acknowledgedWrites().each(func(i int) {
		if s.writes[i].sent < time {
			l = l.with(i)
		}
	})
	return l
}

// write is a step of a writer. A write whose only effect is its put begins right before it and is
// acknowledged right after it: a longer duration would only weaken its promises.
func (w *world) write(s *state, i int, to change) {
	own := int8(i)
	switch w.writes[i].mode {
	case queued:
		w.queue(s, i, to)
	case direct:
		if w.rules.names != fresh {
			w.direct(s, i, to)
			return
		}
		fallthrough
	default:
		if w.slow > 0 {
			w.slowPut(s, i, to)
			return
		}
		if s.writes[i].phase != idle {
			return
		}
		for _, rank := range w.putRanks(s) {
			to(step{"write %d: segment put with rank %d, acknowledged%.0d", own, [2]int8{rank}}, func(n *state) {
				w.begin(n, i)
				n.put(w.writeSlots[i][0], rank, w.stamp(n))
				n.writes[i].phase, n.writes[i].rank = done, rank
			})
		}
	}
}

// slowPut is a step of a writer whose put receives its time first and takes effect later.
func (w *world) slowPut(s *state, i int, to change) {
	own, m := int8(i), &s.writes[i]
	switch {
	case m.phase == idle:
		for _, rank := range w.putRanks(s) {
			to(step{"write %d: begins to put a segment with rank %d%.0d", own, [2]int8{rank}}, func(n *state) {
				w.begin(n, i)
				n.writes[i].phase, n.writes[i].rank = begun, rank
			})
		}
	case m.phase == begun && s.now <= m.sent+w.slow:
		to(step{"write %d: segment put, acknowledged%.0d%.0d", own, [2]int8{}}, func(n *state) {
			n.put(w.writeSlots[i][0], m.rank, m.sent)
			n.writes[i].phase = done
		})
	}
}

// direct is a step of a writer whose names depend on the content. Its slots are the derived name
// and a fresh one.
func (w *world) direct(s *state, i int, to change) {
	own, name, other := int8(i), w.writeSlots[i][0], w.writeSlots[i][1]
	g, m := &s.slots[name], &s.writes[i]
	switch m.phase {
	case idle:
		to(step{"write %d: begins%.0d%.0d", own, [2]int8{}}, func(n *state) {
			w.begin(n, i)
			n.writes[i].phase = begun
		})
	case begun:
		if g.present {
			to(step{"write %d: segment %d is there%.0d", own, [2]int8{int8(name)}}, func(n *state) {
				n.writes[i].phase = listed
				if w.rules.names == derivedBlind {
					n.writes[i].phase = done
				}
			})
			return
		}
		to(step{"write %d: segment %d put%.0d", own, [2]int8{int8(name)}}, func(n *state) {
			n.put(name, n.order+1, w.stamp(n))
			n.writes[i].phase, n.writes[i].rank = done, n.order
			if w.rules.names >= derivedChecked {
				n.writes[i].phase = read
			}
		})
	case listed, read:
		again := g.consumed || m.phase == listed && (g.sealed != 0 || w.rules.names == derivedRepeated && !s.newest(name))
		if !again {
			to(step{"write %d: nothing to do again, acknowledged%.0d%.0d", own, [2]int8{}}, func(n *state) { n.writes[i].phase = done })
			return
		}
		to(step{"write %d: segment %d put under a fresh name, acknowledged%.0d", own, [2]int8{int8(other)}}, func(n *state) {
			n.put(other, n.order+1, w.stamp(n))
			n.writes[i].phase, n.writes[i].rank = done, n.order
		})
	}
}

// newest reports whether no live object has a higher rank.
func (s *state) newest(slot int) bool {
	all := s.sources(s.listing(), math.MaxInt8, math.MaxInt8)
	return len(all) > 0 && all[len(all)-1].rank == s.slots[slot].rank
}
