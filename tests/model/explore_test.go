package model

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// step is a transition: a process and its action. Steps are created in the hot path, so their text
// is formatted only for a trace.
type step struct {
	what string
	who  int8
	args [2]int8
}

func (s step) String() string {
	return fmt.Sprintf(s.what, s.who, s.args[0], s.args[1])
}

// system is a set of states with transitions between them. next must be deterministic.
type system[S comparable] struct {
	initial  S
	next     func(s *S, emit func(step, S))
	check    func(s *S) error // nil if the state keeps every promise
	describe func(s *S) string
}

// result is the result of an exploration, with a trace if a promise was broken.
type result struct {
	states, transitions, depth int
	broken                     error
	trace                      []string
}

func (r result) String() string {
	size := fmt.Sprintf("%d states, %d transitions, depth %d", r.states, r.transitions, r.depth)
	if r.broken == nil {
		return size + ": no counterexample"
	}
	return fmt.Sprintf("%s: %v\n  %s", size, r.broken, strings.Join(r.trace, "\n  "))
}

// explore visits every reachable state breadth first, so that the first counterexample is one of
// the shortest. It fails beyond the limit, because an incomplete exploration proves nothing.
func explore[S comparable](m system[S], limit int) (result, error) {
	v := newVisited[S]()
	v.add(&m.initial, -1)
	r := result{}
	for i, level := 0, 1; i < len(v.states) && len(v.states) <= limit; i++ {
		if i == level {
			r.depth++
			level = len(v.states)
		}
		s := v.states[i]
		if err := m.check(&s); err != nil {
			r.states, r.broken, r.trace = len(v.states), err, trace(m, v, i)
			return r, nil
		}
		m.next(&s, func(_ step, to S) {
			r.transitions++
			v.add(&to, int32(i))
		})
	}
	r.states = len(v.states)
	if r.states > limit {
		return r, fmt.Errorf("more than %d states: the space was not explored whole", limit)
	}
	return r, nil
}

// trace returns the path from the initial state to state i.
func trace[S comparable](m system[S], v *visited[S], i int) []string {
	var path []int
	for at := i; at >= 0; at = int(v.parents[at]) {
		path = append([]int{at}, path...)
	}
	var lines []string
	for n := 1; n < len(path); n++ {
		from, to, found := v.states[path[n-1]], v.states[path[n]], false
		m.next(&from, func(label step, s S) {
			if s == to && !found {
				found = true
				lines = append(lines, fmt.Sprintf("%2d. %-58s %s", n, label, m.describe(&to)))
			}
		})
	}
	return lines
}

// visited is a set of states with the index of the state from which each was first reached.
type visited[S comparable] struct {
	seed    maphash.Seed
	states  []S
	parents []int32
	table   []int32 // open addressing: indices of states plus one
}

func newVisited[S comparable]() *visited[S] {
	return &visited[S]{seed: maphash.MakeSeed(), table: make([]int32, 1<<12)}
}

func (v *visited[S]) add(s *S, parent int32) {
	if 2*len(v.states) >= len(v.table) {
		v.table = make([]int32, 2*len(v.table))
		for i := range v.states {
			v.table[v.slot(&v.states[i])] = int32(i + 1)
		}
	}
	if at := v.slot(s); v.table[at] == 0 {
		v.states, v.parents = append(v.states, *s), append(v.parents, parent)
		v.table[at] = int32(len(v.states))
	}
}

// slot returns the index of the state in the table, or the free slot for it.
func (v *visited[S]) slot(s *S) uint64 {
	mask := uint64(len(v.table) - 1)
	for at := maphash.Comparable(v.seed, *s) & mask; ; at = (at + 1) & mask {
		if i := v.table[at]; i == 0 || v.states[i-1] == *s {
			return at
		}
	}
}
