package model

// queue is a step of a writer that uses the queue, or a delivery.
func (w *world) queue(s *state, i int, to change) {
	own, m := int8(i), &s.writes[i]
	if m.phase == idle {
		for _, rank := range w.putRanks(s) {
			to(step{"write %d: message sent at time %d with rank %d, acknowledged", own, [2]int8{s.now, rank}}, func(n *state) {
				w.begin(n, i)
				n.order++
				n.writes[i].phase, n.writes[i].sent, n.writes[i].rank = done, n.now, rank
			})
		}
		return
	}
	single := false
	for _, g := range w.writeSlots[i] {
		batch := w.slotWrites[g]
		if s.slots[g].used() || batch.first() != i || single && batch == set(0).with(i) {
			continue
		}
		single = single || batch == set(0).with(i)
		time, rank, ok := w.batched(s, batch)
		if !ok {
			continue
		}
		ranks := []int8{rank}
		if w.rules.mintAtConsume || w.rules.old.used() {
			ranks = w.putRanks(s)
		}
		if w.rules.resent && g != w.writeSlots[i][0] {
			time, ranks = s.now, []int8{s.order + 1}
		}
		for _, rank := range ranks {
			to(step{"message of write %d delivered: segment %d put with rank %d", own, [2]int8{int8(g), rank}}, func(n *state) { n.put(g, rank, time) })
		}
	}
}

// used reports whether the segment is or was in the store.
func (g *slot) used() bool { return g.present || g.consumed || g.gone }

// batched returns the time and rank of a segment of several messages, if they may become one now.
func (w *world) batched(s *state, batch set) (time, rank int8, ok bool) {
	oldest, newest := batch.first(), batch.first()
	ok = true
	batch.each(func(i int) {
		m := &s.writes[i]
		ok = ok && m.phase == done && s.now <= m.sent+w.age
		if m.rank > s.writes[newest].rank {
			newest = i
		}
		if m.rank < s.writes[oldest].rank {
			oldest = i
		}
	})
	switch w.rules.batch {
	case batchOldest:
		return s.writes[oldest].sent, s.writes[oldest].rank, ok
	case batchWithinTick:
		ok = ok && s.writes[oldest].sent == s.writes[newest].sent
	}
	return s.writes[newest].sent, s.writes[newest].rank, ok
}
