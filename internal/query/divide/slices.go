package divide

import (
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/query/plan"
)

// Slice is some consecutive steps of a range query: the times (ms) of the first and the last one.
type Slice struct{ From, Upto int64 }

// String names the slice in messages.
func (s Slice) String() string {
	t := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
	return fmt.Sprintf("the steps from %s to %s", t(s.From), t(s.Upto))
}

// halves returns both halves of a slice, which have two steps at least; false if it has fewer than
// four.
func (s Slice) halves(step int64) (a, b Slice, ok bool) {
	n := (s.Upto-s.From)/step + 1
	middle := s.From + n/2*step
	return Slice{s.From, middle - step}, Slice{middle, s.Upto}, n >= 4
}

// Fine returns the slice in parts that a range query may have as many steps as: itself, if it is
// one.
func (s Slice) Fine(step int64) []Slice {
	if (s.Upto-s.From)/step <= MaxSteps {
		return []Slice{s}
	}
	a, b, _ := s.halves(step)
	return append(a.Fine(step), b.Fine(step)...)
}

// MaxSlices is the largest number of slices of MaxSteps that are made for other programs.
const MaxSlices = 10_000

// leastShare bounds slices from below: each is to read an eighth of --query.divide-bytes or more.
const leastShare = 8

// Extent is what the number of slices of a query depends on.
type Extent struct {
	Bytes int64 // that the query reads, by its estimate
	From  int64 // bytes from which queries are divided
	// Window is the length (ms) of the windows of the blocks in which most of the bytes are, and
	// Windows how many of them a slice has at least: at each border, the rows of one window are
	// read twice. 0 cuts anywhere.
	Window, Windows int64
}

// Slices cuts a grid for a number of workers with at most perWorker slices each, at the ends of
// windows of blocks. A slice has two steps at least: upstream evaluates a single one as an instant.
// One slice alone means that the query is not divided.
func Slices(g plan.Grid, workers, perWorker int, x Extent) []Slice {
	n := min(int64(workers*perWorker), max(2, x.Bytes/max(1, x.From/leastShare)), int64(g.N)/2)
	if x.Windows > 0 {
		n = min(n, int64(g.N)*g.Step/(x.Window*x.Windows))
	}
	if w := int64(workers); n > w && w > 0 {
		n -= n % w // each worker gets as many
	}
	out, first := make([]Slice, 0, max(n, 1)), 0
	for i := int64(1); i < n; i++ {
		at := g.Start + g.Step*int64(g.N)*i/n
		if x.Windows > 0 {
			at = (at + x.Window/2) / x.Window * x.Window
		}
		if last := int((at - g.Start) / g.Step); last > first && last < g.N-2 {
			out = append(out, Slice{g.Start + int64(first)*g.Step, g.Start + int64(last)*g.Step})
			first = last + 1
		}
	}
	return append(out, Slice{g.Start + int64(first)*g.Step, g.End()})
}
