package listen

import "time"

// flush appends what lines add up to at intervals, and once more when the last line has come. While
// the store is away, samples of later times are left out: sums go on.
func (l *Listener) flush() {
	t := time.NewTicker(l.set.Interval)
	defer t.Stop()
	for ended := false; !ended; {
		select {
		case <-t.C:
		case <-l.received:
			ended = true
		}
		l.guard(1, func() {
			if samples, size, source := l.protocol.Aggregate.Flush(); samples > 0 {
				l.store(samples, size, source)
			}
		})
	}
}
