package memqueue

import "sync"

// Script is a list of faults. Each takes effect once, at the first call of its kind. Its method
// Next is a Settings.Faults. The zero value is empty; a test may add to it while the queue is in
// use.
type Script struct {
	mu    sync.Mutex
	lines []line
}

type line struct {
	op    Op
	fault Fault
}

// Add appends a fault for the next call of a kind that has none before it.
func (s *Script) Add(op Op, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line{op, f})
}

// Next takes the first fault for c out of the script.
func (s *Script) Next(c Call) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, l := range s.lines {
		if l.op == c.Op {
			s.lines = append(s.lines[:i:i], s.lines[i+1:]...)
			return l.fault
		}
	}
	return Fault{}
}

// Left returns the number of faults that have not struck yet.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines)
}
