package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func (w *world) system() system[state] {
	initial := state{}
	if w.rules.old.used() {
		initial.id = -1 // the manifest before the first
	}
	return system[state]{
		initial: initial,
		next:    w.next,
		check: func(s *state) error {
			if w.forGood && s.droppable() {
				return nil
			}
			if err := s.reader.verdict.err(); err != nil {
				return err
			}
			return w.judge(s, s.listing(), w.promised(s)).err()
		},
		describe: w.describe,
	}
}

// describe describes the content of the store, and a reader's view of it.
func (w *world) describe(s *state) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| t%d", s.now)
	for i := range s.slots {
		if g := &s.slots[i]; g.present && !g.consumed {
			fmt.Fprintf(&b, " seg%d(w%d rank %d", i, w.slotWrites[i].first(), g.rank)
			if g.sealed != 0 {
				fmt.Fprintf(&b, " sealed %d", g.sealed)
			}
			b.WriteString(")")
		}
	}
	for i := range s.blocks {
		if x := &s.blocks[i]; x.used {
			fmt.Fprintf(&b, " block%d(%s rank %d through %d)", i, values(x.value), x.rank, x.through)
		}
	}
	for i := range s.tombs {
		if t := &s.tombs[i]; t.present {
			fmt.Fprintf(&b, " tomb%d(%d, queue %d)", i, t.number, t.through)
		}
	}
	var seen [maxPoints]int8
	for p := range seen {
		seen[p] = w.seen(s, s.listing(), p)
	}
	fmt.Fprintf(&b, " => %s", values(seen))
	return b.String()
}

func values(v [maxPoints]int8) string {
	var parts []string
	for _, x := range v {
		if x == none {
			parts = append(parts, "-")
		} else {
			parts = append(parts, fmt.Sprintf("w%d", x-1))
		}
	}
	return strings.Join(parts, ",")
}

// stateLimit is the number of states that fit in some gigabytes of memory.
const stateLimit = 20_000_000

// verdict explores a system. The system must break the given promise, and the test prints the
// trace; with "" it must keep all promises.
func verdict[S comparable](t *testing.T, promise string, m system[S]) {
	t.Helper()
	r, err := explore(m, stateLimit)
	require.NoError(t, err, r)
	t.Log(r)
	if promise == "" {
		require.NoError(t, r.broken, r)
		return
	}
	require.ErrorContains(t, r.broken, promise+":", r)
}

func holds(t *testing.T, sc scenario) {
	t.Helper()
	verdict(t, "", newWorld(sc).system())
}

func breaks(t *testing.T, promise string, sc scenario) {
	t.Helper()
	verdict(t, promise, newWorld(sc).system())
}
