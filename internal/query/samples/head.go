package samples

// join adds the samples of series that have some, which are those from a time on, to those of
// objects, of which it leaves out what is later: the same samples.
func (r *Collector) join() error {
	n := 0
	for _, s := range r.got {
		kept := s.floats[:0]
		for _, f := range s.floats {
			if f.last() >= r.HeadFrom {
				if f.first() >= r.HeadFrom {
					continue
				}
				f.n = uint32(reaching(f.times(), r.HeadFrom))
			}
			kept = append(kept, f)
		}
		s.floats = kept
		if s.Head == nil {
			continue
		}
		if lo, hi := between(s.Head.T, r.MinT, r.MaxT); lo < hi {
			b := &batch{t: s.Head.T, v: s.Head.V, clean: !s.Head.Stale}
			s.floats = append(s.floats, fragment{b, uint32(lo), uint32(lo), uint32(hi - lo), uint32(len(r.Objects))})
			n += hi - lo
		}
	}
	return r.hold(int64(n))
}
