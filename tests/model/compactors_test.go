package model

import "math"

// compact is a step of a compactor: it lists, reads the manifest and merges neighbours, and commits
// on the newest manifest; or it lists, and drops tombstones.
func (w *world) compact(s *state, i int, to change) {
	own, c := int8(i), &s.comps[i]
	switch c.phase {
	case idle:
		if s.merges+s.merging() < w.merges || s.droppable() {
			to(step{"compactor %d: lists%.0d%.0d", own, [2]int8{}}, func(n *state) {
				n.comps[i] = compactor{phase: listed, listed: n.listing(), complete: w.complete(n)}
				if w.needsTime() || w.rules.coarse {
					n.comps[i].at = n.now
				}
			})
		}
	case listed:
		if s.merges+s.merging() < w.merges {
			w.plan(s, i, to)
		}
		for t := range s.tombs {
			if s.tombs[t].present && w.mayDrop(s, c, &s.tombs[t]) {
				to(step{"compactor %d: drops the tombstone of deletion %d%.0d", own, [2]int8{int8(t)}}, func(n *state) {
					n.tombs[t] = tombstone{}
					n.comps[i] = compactor{}
					w.commitID(n)
				})
			}
		}
		to(step{"compactor %d: gives up%.0d%.0d", own, [2]int8{}}, func(n *state) { n.comps[i] = compactor{} })
	case read:
		if !w.mayCommit(s, c) {
			to(step{"compactor %d: its commit is refused%.0d%.0d", own, [2]int8{}}, func(n *state) { n.comps[i] = compactor{} })
			return
		}
		for _, id := range w.ids(s) {
			to(step{"compactor %d: commits%.0d%.0d", own, [2]int8{}}, func(n *state) { w.commitMerge(n, i, id) })
		}
	}
}

func (s *state) merging() (n int8) {
	for i := range s.comps {
		if s.comps[i].phase == read {
			n++
		}
	}
	return n
}

func (s *state) droppable() bool {
	for i := range s.tombs {
		if s.tombs[i].present {
			return true
		}
	}
	return false
}

// plan reads the manifest and merges any run of neighbours in rank. One block alone is a source
// only if a tombstone applies to it.
func (w *world) plan(s *state, i int, to change) {
	c := &s.comps[i]
	segments, blocks := c.complete, c.complete
	if w.rules.unsettled {
		segments = math.MaxInt8
	}
	if w.rules.unsettled || w.rules.newBlocks {
		blocks = math.MaxInt8
	}
	own, all := int8(i), s.sources(c.listed, segments, blocks)
	for first := range all {
		for last := first; last < len(all); last++ {
			w.take(s, i, all[first:last+1], own, to)
		}
	}
	if w.rules.anySources && len(all) == 3 {
		w.take(s, i, []source{all[0], all[2]}, own, to)
	}
}

// complete is the highest rank up to which the listing is complete: within the current tick, names
// decide.
func (w *world) complete(s *state) int8 {
	switch {
	case w.rules.old.used():
		return math.MaxInt8 // the clock may be past every settle delay
	case w.rules.coarse:
		if w.rules.hasty {
			return coarseUnit*s.now - 1
		}
		return coarseUnit*(s.now-w.slow) - 1
	}
	return s.order
}

func (w *world) take(s *state, i int, sources []source, own int8, to change) {
	c := compactor{phase: read}
	for _, src := range sources {
		if src.isBlock {
			c.blocks = c.blocks.with(src.i)
		} else {
			c.slots = c.slots.with(src.i)
		}
	}
	c.out = w.merge(s, sources)
	if len(sources) == 1 && sources[0].isBlock && c.out.value == s.blocks[sources[0].i].value && c.out.through == s.blocks[sources[0].i].through {
		return
	}
	to(step{"compactor %d: reads the manifest, merges segments %b, blocks %b", own, [2]int8{int8(c.slots), int8(c.blocks)}}, func(n *state) { n.comps[i] = c })
}

// mayCommit is the transition's precondition on the newest manifest: every source is live, and a
// tombstone that the job has not read applies to all of them, so that it may apply to the block.
func (w *world) mayCommit(s *state, c *compactor) bool {
	ok := true
	c.slots.each(func(g int) { ok = ok && (w.rules.noSourceCheck || s.slots[g].present && !s.slots[g].consumed) })
	c.blocks.each(func(b int) { ok = ok && (w.rules.noSourceCheck || s.blocks[b].used) })
	for i := range s.tombs {
		t := &s.tombs[i]
		if !t.present || t.number <= c.out.through || w.rules.noTombstoneCheck {
			continue
		}
		c.slots.each(func(g int) { ok = ok && w.appliesToSegment(s, t, g) })
		c.blocks.each(func(b int) { ok = ok && w.appliesToBlock(t, &s.blocks[b]) })
	}
	return ok
}

// ids returns the IDs that the old protocol's next manifest may get.
func (w *world) ids(s *state) []int8 {
	if !w.rules.old.used() {
		return []int8{0}
	}
	var all []int8
	for _, r := range s.readings(w.rules.old.compactors) {
		all = append(all, max(r, s.id+1))
	}
	return all
}

// commitID sets the lowest ID, for commits whose ID does not matter.
func (w *world) commitID(n *state) {
	if w.rules.old.used() {
		n.id++
	}
	w.changed(n)
}

func (w *world) commitMerge(n *state, i int, id int8) {
	c := n.comps[i]
	n.comps[i] = compactor{}
	c.slots.each(func(g int) {
		n.slots[g].consumed = true
		n.slots[g].sealed = 0
	})
	c.blocks.each(func(b int) { n.blocks[b] = block{} })
	if w.rules.throughAtCommit {
		c.out.through = n.last
	}
	if c.out.value != [maxPoints]int8{} {
		n.blocks[n.merges] = c.out
		w.overtake(n, &c.out)
	}
	n.merges++
	n.id = id
	w.changed(n)
}

// overtake records the queued writes that lose against an older one from now on, because a block
// with a higher rank contains it.
func (w *world) overtake(n *state, b *block) {
	for i, spec := range w.writes {
		v := b.value[spec.point]
		if spec.mode == queued && n.writes[i].phase == done && v != none && n.writes[v-1].rank < n.writes[i].rank && n.writes[i].rank < b.rank {
			n.passed = n.passed.with(i)
		}
	}
}

// mayDrop reports whether the tombstone has nothing left to delete according to this compactor's
// listing and the newest manifest, and no message that it covers can still be delivered.
func (w *world) mayDrop(s *state, c *compactor, t *tombstone) bool {
	if w.rules.dropAtOnce {
		return true
	}
	late := w.age + w.slow
	if w.rules.dropHasty {
		late = 0
	}
	if w.needsTime() && !w.rules.old.used() && !w.rules.dropYoung && c.at <= t.through+late {
		return false
	}
	if w.rules.old.used() && t.number >= oldUnit*c.at {
		return false // segments of its time may not be listed yet
	}
	for i := range s.blocks {
		if b := &s.blocks[i]; b.used && w.appliesToBlock(t, b) {
			return false
		}
	}
	ok := true
	s.live(c.listed).each(func(g int) {
		bySeal := s.slots[g].sealed != 0 && s.slots[g].sealed <= t.number
		ok = ok && (!w.appliesToSegment(s, t, g) || w.rules.dropUnlisted && !bySeal)
	})
	for g := range s.slots { // sealed is in the manifest, so it counts without a listing
		ok = ok && (s.slots[g].consumed || s.slots[g].sealed == 0 || s.slots[g].sealed > t.number)
	}
	return ok
}

func (w *world) hasQueue() bool { return w.age > 0 }
