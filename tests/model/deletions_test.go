package model

// delete is a step of a deletion: it reads the manifest, lists, reads the queue's time, commits if
// the manifest is unchanged, waits until that time is over, and answers. After a conflict it starts
// again.
func (w *world) delete(s *state, i int, to change) {
	own, d := int8(i), &s.dels[i]
	switch d.phase {
	case idle:
		to(step{"deletion %d: begins at time %d%.0d", own, [2]int8{s.now}}, func(n *state) {
			n.dels[i] = deletion{phase: begun, begin: n.acknowledgedWrites()}
			switch w.rules.cover {
			case listingFirst:
				n.dels[i].listed, n.dels[i].time = n.listing(), n.now
			case timeFirst:
				n.dels[i].time = n.now
			}
		})
	case begun:
		to(step{"deletion %d: reads the manifest%.0d%.0d", own, [2]int8{}}, func(n *state) {
			n.dels[i].phase = read
			if w.rules.cover == listingFirst {
				n.dels[i].phase = asked
			}
			if w.rules.cover == byTime {
				n.dels[i].phase = listed
			}
		})
	case read:
		to(step{"deletion %d: lists%.0d%.0d", own, [2]int8{}}, func(n *state) {
			n.dels[i].phase, n.dels[i].listed = listed, n.listing()
			if w.rules.cover == timeFirst || !w.needsTime() {
				n.dels[i].phase = asked
			}
		})
	case listed:
		to(step{"deletion %d: asks the time, which is %d%.0d", own, [2]int8{s.now}}, func(n *state) { n.dels[i].phase, n.dels[i].time = asked, n.now })
	case asked:
		for _, number := range w.numbers(s) {
			to(step{"deletion %d: commits tombstone %d%.0d", own, [2]int8{number}}, func(n *state) { w.commitDeletion(n, i, number) })
		}
	case committed:
		if w.mayAnswer(s, d) {
			to(step{"deletion %d: acknowledged at time %d%.0d", own, [2]int8{s.now}}, func(n *state) { n.dels[i] = deletion{phase: done, begin: n.dels[i].begin} })
		}
	}
}

// mayAnswer reports whether no message that is sent from now on can have a send time that the
// deletion covers.
func (w *world) mayAnswer(s *state, d *deletion) bool {
	return w.rules.noWait || w.rules.roundDown || !w.needsTime() || s.now > d.time
}

// needsTime reports whether the cover of a deletion depends on a time.
func (w *world) needsTime() bool {
	return w.hasQueue() || w.rules.cover == byTime || w.rules.old.used()
}

// numbers returns the numbers that the next tombstone may get: the old protocol uses a clock.
func (w *world) numbers(s *state) []int8 {
	if !w.rules.old.used() {
		if w.rules.reuseNumbers {
			highest := int8(0)
			for i := range s.tombs {
				if s.tombs[i].present {
					highest = max(highest, s.tombs[i].number)
				}
			}
			return []int8{highest + 1}
		}
		return []int8{s.last + 1}
	}
	var all []int8
	for _, clock := range s.readings(w.rules.old.deleters) {
		rank := int8(0)
		for i := range s.blocks {
			rank = max(rank, s.blocks[i].rank)
		}
		all = append(all, max(oldUnit*max(clock, s.id+1, rank/oldUnit)+1, s.last+1))
	}
	return all
}

func (w *world) commitDeletion(n *state, i int, number int8) {
	d := &n.dels[i]
	through := d.time
	if w.rules.roundDown {
		through--
	}
	n.tombs[i] = tombstone{present: true, number: number, through: through}
	if w.rules.old.used() {
		n.id = max(n.id+1, number/oldUnit)
		d.time = n.now // answers in a later millisecond
	}
	if w.rules.cover != byTime && !w.rules.noListing && !w.rules.old.used() {
		n.live(d.listed).each(func(g int) {
			if n.slots[g].sealed == 0 || w.rules.sealAgain {
				n.slots[g].sealed = number
			}
		})
	}
	n.last = max(n.last, number)
	n.dels[i] = deletion{phase: committed, begin: d.begin, time: d.time}
	w.changed(n)
}

// changed makes every deletion read the manifest again, because its swap would fail.
func (w *world) changed(n *state) {
	for i := range n.dels {
		if w.rules.noSwap {
			break
		}
		if d := &n.dels[i]; d.phase > begun && d.phase < committed {
			d.phase = begun
			if w.rules.cover != listingFirst {
				d.listed = 0
			}
			if w.rules.cover == sealed || w.rules.cover == byTime {
				d.time = 0
			}
		}
	}
}
