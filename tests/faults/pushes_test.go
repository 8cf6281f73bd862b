package faults

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pushBook is what was pushed to the groups of a writer, one for each process: the server's clock
// tells the time of a push, and those of two processes differ by more than the minute that a group
// allows. So the book has no times. Every value is pushed once; a process may store it twice.
type pushBook struct {
	book
	values map[value]bool // whether it was acknowledged
}

func newPushBook(series string) *pushBook {
	return &pushBook{*newBook(pushing, series), map[value]bool{}}
}

// pushed records a push that is over.
func (b *pushBook) pushed(v value, acknowledged bool) { b.values[v] = acknowledged }

// check compares an answer with the book.
func (b *pushBook) check(got []sample, from string) error {
	seen := map[value]bool{}
	for _, x := range got {
		if _, ok := b.values[x.v]; !ok {
			return b.wrong(x.ts, x.v, nil, from)
		}
		seen[x.v] = true
	}
	for _, v := range slices.Sorted(maps.Keys(b.values)) {
		if b.values[v] && !seen[v] {
			return b.wrong(0, nothing, []value{v}, from)
		}
	}
	return nil
}

// push pushes a value to the group of a process.
func (w *writer) push(ctx context.Context) error {
	b, s := w.pushes, w.world.servers[w.rng.IntN(2)]
	i := s.current()
	v := value(w.world.values.Add(1))
	b.note("0 push of %s by %s", v, i)
	path := strings.Join([]string{pushing.path, "s", b.series, "process", i.name}, "/")
	ok, err := w.send(ctx, s, i, pushing, path, fmt.Appendf(nil, "push_m %s\n", v.number()))
	b.pushed(v, ok)
	b.note("0 push of %s by %s, acknowledged: %t", v, i, ok)
	return err
}
