package model

func (r garbageRules) next(s *garbageState, emit func(step, garbageState)) {
	to := func(label step, change func(*garbageState)) {
		n := *s
		change(&n)
		n.normalize()
		emit(label, n)
	}
	if s.now < lastTick {
		to(step{what: "the clock moves%.0d%.0d%.0d"}, func(n *garbageState) { n.now++ })
	}
	for i := range r.compactors {
		r.job(s, i, to)
	}
	for i := range r.collectors {
		r.collect(s, i, to)
	}
	if r.reader {
		r.query(s, to)
	}
}

// normalize clears state that has no further effect: the manifest's time if no entry depends on it.
func (s *garbageState) normalize() {
	fresh := false
	for i := range s.manifest.entries {
		fresh = fresh || s.manifest.entries[i].fresh
	}
	if !fresh {
		s.manifest.time = 0
	}
}

// job is a step of a compactor: it lists, reads the manifest, uploads a block, and commits on the
// newest manifest if that permits it.
func (r garbageRules) job(s *garbageState, i int, to func(step, func(*garbageState))) {
	own, j := int8(i), &s.jobs[i]
	switch j.phase {
	case idle:
		to(step{"compactor %d: lists%.0d%.0d", own, [2]int8{}}, func(n *garbageState) {
			n.jobs[i] = job{phase: listed, listed: n.present.has(0), generation: n.manifest.generation}
		})
		return
	case listed:
		if int(s.uploads)+1 == r.objects {
			return
		}
		if j.listed && s.manifest.segmentLive() {
			r.start(s, i, 0, to)
		}
		s.manifest.live.each(func(source int) { r.start(s, i, int8(source), to) })
		return
	}
	m := &s.manifest
	ok := m.entries[j.output].phase == idle && (r.noFloor || j.generation >= m.floor)
	if j.source == 0 {
		ok = ok && m.segmentLive()
	} else {
		ok = ok && m.live.has(int(j.source))
	}
	if !ok {
		to(step{"compactor %d: its commit of block %d is refused%.0d", own, [2]int8{j.output}}, func(n *garbageState) { n.jobs[i] = job{} })
		return
	}
	to(step{"compactor %d: commits block %d in place of object %d", own, [2]int8{j.output, j.source}}, func(n *garbageState) {
		n.commit(func(m *manifest) {
			m.live = m.live.without(set(1) << j.source).with(int(j.output))
			m.entries[j.source] = entry{phase: listed, at: j.drawn, fresh: true}
		})
		n.jobs[i] = job{}
	})
}

// start reads the manifest, and makes a block of an object that is live in it.
func (r garbageRules) start(s *garbageState, i int, source int8, to func(step, func(*garbageState))) {
	to(step{"compactor %d: reads the manifest, makes block %d of object %d", int8(i), [2]int8{s.uploads + 1, source}}, func(n *garbageState) {
		n.uploads++
		n.present = n.present.with(int(n.uploads))
		j := job{phase: read, source: source, output: n.uploads, drawn: r.draw(n), generation: n.jobs[i].generation}
		if r.lateFloor {
			j.generation = n.manifest.generation
		}
		n.jobs[i] = j
	})
}

// draw returns the time that a committer records for its commit, where that matters.
func (r garbageRules) draw(s *garbageState) int8 {
	if r.drawnTime {
		return s.now
	}
	return 0
}

// collect is a step of a collector. It reads the manifest and the time, and decides; it may act on
// the decision much later.
func (r garbageRules) collect(s *garbageState, i int, to func(step, func(*garbageState))) {
	own, c := int8(i), &s.workers[i]
	switch c.phase {
	case idle:
		for victim := range r.objects {
			r.decide(s, i, victim, to)
		}
	case begun:
		to(step{"collector %d: deletes object %d%.0d", own, [2]int8{c.victim}}, func(n *garbageState) {
			n.present = n.present.without(set(1) << c.victim)
			n.workers[i].phase = listed
			if c.doom {
				n.workers[i] = worker{}
			}
		})
	case listed:
		to(step{"collector %d: commits that object %d is gone%.0d", own, [2]int8{c.victim}}, func(n *garbageState) {
			n.workers[i] = worker{}
			if n.manifest.entries[c.victim].phase != listed {
				return
			}
			n.commit(func(m *manifest) {
				e := &m.entries[c.victim]
				e.phase, e.at, e.fresh, e.generation = done, c.drawn, true, m.generation
				if r.forgetAtOnce {
					m.floor = max(m.floor, e.generation)
					*e = entry{}
				}
			})
		})
	}
}

func (r garbageRules) decide(s *garbageState, i, victim int, to func(step, func(*garbageState))) {
	own, o := int8(i), int8(victim)
	e := &s.manifest.entries[victim]
	over := r.noDelay || r.machineClock || s.now-s.manifest.since(e, r) >= deletionDelay
	switch {
	case e.phase == listed && over && s.present.has(victim):
		to(step{"collector %d: decides at time %d to delete object %d", own, [2]int8{s.now, o}}, func(n *garbageState) { n.workers[i] = worker{begun, o, false, r.draw(n)} })
	case e.phase == done && over:
		to(step{"collector %d: the manifest forgets object %d%.0d", own, [2]int8{o}}, func(n *garbageState) {
			n.commit(func(m *manifest) {
				m.floor = max(m.floor, m.entries[victim].generation)
				m.entries[victim] = entry{}
			})
		})
	case e.phase == idle && victim > 0 && s.present.has(victim) && !s.manifest.live.has(victim):
		// An orphan according to the manifest: its job may be dead, or slow. No clock can
		// distinguish these.
		if r.noDoom {
			to(step{"collector %d: takes block %d for an orphan%.0d", own, [2]int8{o}}, func(n *garbageState) { n.workers[i] = worker{begun, o, true, 0} })
			return
		}
		to(step{"collector %d: commits that block %d is an orphan%.0d", own, [2]int8{o}}, func(n *garbageState) {
			n.commit(func(m *manifest) {
				m.entries[victim] = entry{phase: listed, at: r.draw(n), fresh: true}
			})
		})
	}
}

// query is a step of a reader: it lists, reads the manifest, and reads the live objects, unless its
// time is over.
func (r garbageRules) query(s *garbageState, to func(step, func(*garbageState))) {
	q := &s.reader
	if q.phase != idle && q.phase != done && s.now-q.start > longestQuery {
		to(step{what: "reader: gives up%.0d%.0d%.0d"}, func(n *garbageState) { n.reader = query{phase: done} })
		return
	}
	switch q.phase {
	case idle:
		to(step{what: "reader: lists%.0d%.0d%.0d"}, func(n *garbageState) { n.reader = query{phase: listed, start: n.now, listed: n.present.has(0)} })
	case listed:
		to(step{what: "reader: reads the manifest%.0d%.0d%.0d"}, func(n *garbageState) {
			needed := n.manifest.live
			if q.listed && n.manifest.segmentLive() {
				needed = needed.with(0)
			}
			n.reader.phase, n.reader.needed = read, needed
			if needed&(needed-1) != 0 || needed == 0 {
				n.misplaced = needed.with(7)
			}
		})
	case read:
		to(step{what: "reader: reads its objects%.0d%.0d%.0d"}, func(n *garbageState) { n.reader = query{phase: done, missing: q.needed.without(n.present)} })
	}
}
