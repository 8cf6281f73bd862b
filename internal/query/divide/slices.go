package divide

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/prometheus/prometheus/promql"

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

// Of returns the part of a range query's answer that is the slice's. It shares the memory.
func (s Slice) Of(m promql.Matrix) (out promql.Matrix) {
	for _, all := range m {
		part := promql.Series{Metric: all.Metric}
		from := sort.Search(len(all.Floats), func(i int) bool { return all.Floats[i].T >= s.From })
		upto := sort.Search(len(all.Floats), func(i int) bool { return all.Floats[i].T > s.Upto })
		part.Floats = all.Floats[from:upto:upto]
		from = sort.Search(len(all.Histograms), func(i int) bool { return all.Histograms[i].T >= s.From })
		upto = sort.Search(len(all.Histograms), func(i int) bool { return all.Histograms[i].T > s.Upto })
		part.Histograms = all.Histograms[from:upto:upto]
		if len(part.Floats)+len(part.Histograms) > 0 {
			out = append(out, part)
		}
	}
	return out
}

// Windows returns the slices of a grid that lie in whole windows of unit ms for which fit returns
// true. Windows are aligned: consecutive ones are joined to windows of 2, 4, 8… units up to most
// ms, so that most steps of two queries of which one begins later are in the same slices.
func Windows(g plan.Grid, unit, most int64, fit func(Slice) bool) (out []Slice) {
	steps := func(w, length int64) Slice { // of the grid, in [w, w+length)
		first := (w - g.Start + g.Step - 1) / g.Step
		last := (w + length - 1 - g.Start) / g.Step
		return Slice{g.Start + first*g.Step, g.Start + last*g.Step}
	}
	first := g.Start - g.Step + 1 // the step before the grid is in no window
	first += ((-first)%unit + unit) % unit
	fits := []bool{}
	for w := first; w+unit <= g.End()+g.Step; w += unit {
		fits = append(fits, fit(steps(w, unit)))
	}
	for i := 0; i < len(fits); i++ {
		if !fits[i] {
			continue
		}
		w, n := first+int64(i)*unit, 1
		for ; int64(2*n)*unit <= most && w%(int64(2*n)*unit) == 0 && i+2*n <= len(fits) && !slices.Contains(fits[i:i+2*n], false); n *= 2 {
		}
		out = append(out, steps(w, int64(n)*unit))
		i += n - 1
	}
	return out
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
