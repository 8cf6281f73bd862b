package model

// next emits every step that any process may take.
func (w *world) next(s *state, emit func(step, state)) {
	to := func(label step, change func(*state)) {
		n := *s
		change(&n)
		if n == *s {
			return
		}
		w.remember(&n)
		n.normalize(w)
		emit(label, n)
	}
	if s.now < w.ticks {
		to(step{what: "the clock moves%.0d%.0d%.0d"}, func(n *state) { n.now++ })
	}
	for i := range w.writes {
		w.write(s, i, to)
	}
	for i := range w.dels {
		w.delete(s, i, to)
	}
	for i := range w.compactors {
		w.compact(s, i, to)
	}
	for i := range w.collectors {
		w.collect(s, i, to)
	}
	if w.reader {
		w.readerStep(s, to)
	}
}

type change = func(step, func(*state))

// normalize makes states equal that differ only in the order of equal processes.
func (s *state) normalize(w *world) {
	if w.compactors == 2 && s.comps[1].less(&s.comps[0]) {
		s.comps[0], s.comps[1] = s.comps[1], s.comps[0]
	}
	if w.collectors == 2 && (s.gcs[1].phase < s.gcs[0].phase || s.gcs[1].phase == s.gcs[0].phase && s.gcs[1].victim < s.gcs[0].victim) {
		s.gcs[0], s.gcs[1] = s.gcs[1], s.gcs[0]
	}
}

func (c *compactor) less(o *compactor) bool {
	a := [...]int8{int8(c.phase), int8(c.listed), c.at, c.complete, int8(c.slots), int8(c.blocks), c.out.rank, c.out.through, c.out.value[0], c.out.value[1]}
	b := [...]int8{int8(o.phase), int8(o.listed), o.at, o.complete, int8(o.slots), int8(o.blocks), o.out.rank, o.out.through, o.out.value[0], o.out.value[1]}
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// readerStep lists, and later reads the manifest.
func (w *world) readerStep(s *state, to change) {
	switch s.reader.phase {
	case idle:
		to(step{what: "reader: lists%.0d%.0d%.0d"}, func(n *state) {
			p := w.promised(n)
			n.reader = reader{phase: listed, listed: n.listing(), writes: p.writes, deleted: p.deleted}
		})
	case listed:
		to(step{what: "reader: reads the manifest%.0d%.0d%.0d"}, func(n *state) {
			r := n.reader
			n.reader = reader{phase: done, verdict: w.judge(n, r.listed, promised{r.writes, r.deleted})}
		})
	}
}
