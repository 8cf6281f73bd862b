package model

// collect is a step of a garbage collector: it selects a consumed segment, deletes it, and later
// the manifest forgets it. The deletion delay is part of the other model: here readers take no
// time.
func (w *world) collect(s *state, i int, to change) {
	own, c := int8(i), &s.gcs[i]
	if c.phase == begun {
		to(step{"collector %d: deletes segment %d%.0d", own, [2]int8{c.victim}}, func(n *state) {
			n.slots[c.victim].present = false
			n.gcs[i] = collector{}
		})
		return
	}
	for g := range s.slots {
		switch {
		case s.slots[g].consumed && s.slots[g].present:
			to(step{"collector %d: is about to delete segment %d%.0d", own, [2]int8{int8(g)}}, func(n *state) { n.gcs[i] = collector{begun, int8(g)} })
		case s.slots[g].consumed && !s.slots[g].present:
			to(step{"collector %d: the manifest forgets segment %d%.0d", own, [2]int8{int8(g)}}, func(n *state) {
				n.slots[g] = slot{gone: true}
				w.changed(n)
			})
		}
	}
}
