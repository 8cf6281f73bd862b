package samples

// heads takes the samples of series that have them. Series with equal times share them.
func (r *Collector) heads() error {
	batches, room, n := make([]batch, len(r.got)), r.fragments(len(r.got)), 0
	for i, s := range r.got {
		lo, hi := between(s.Head.T, r.MinT, r.MaxT)
		if lo == hi {
			continue
		}
		batches[i] = batch{t: s.Head.T, v: s.Head.V, clean: !s.Head.Stale}
		room[i] = fragment{&batches[i], uint32(lo), uint32(hi - lo), 0}
		s.floats = room[i : i+1 : i+1]
		n += hi - lo
	}
	return r.hold(int64(n))
}
