package request

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Bytes that upstream's engine allocates.
const (
	BytesPerPoint  = 16   // a float at a step
	bytesPerSeries = 128  // a series of a result, without its labels
	bytesPerCopy   = 36   // a point in a list that grows by a quarter, while it is copied
	firstPoints    = 5000 // points that a series gets room for at its first one, if there are as many steps
)

// ByteBudget sums the bytes that one query reads and ends the query at its limit.
type ByteBudget struct {
	limit int64
	end   context.CancelCauseFunc
	read  atomic.Int64
}

// NewByteBudget returns a budget that calls end, with a *LimitError, once reads exceed limit bytes.
func NewByteBudget(limit int64, end context.CancelCauseFunc) *ByteBudget {
	return &ByteBudget{limit: limit, end: end}
}

// Count adds what a read takes to the statistics and to the byte budget of the request.
func (r Request) Count(t Totals) {
	if r.Stats != nil {
		r.Stats.Add(t)
	}
	if r.Took != nil {
		r.Took.Bytes.Add(t.Bytes.Read)
	}
	if b := r.Bytes; b != nil {
		if n := b.read.Add(t.Bytes.Read); n > b.limit {
			b.end(&LimitError{Limit: "bytes of objects per query", Value: b.limit, Needed: n, Flag: "--query.max-fetched-bytes"})
		}
	}
}

// Size bounds the bytes of labels: PerValue for each byte of the longest value that a label of a
// stored series has, and Fixed ones.
type Size struct{ PerValue, Fixed float64 }

// Growth bounds the labels of a statement's intermediate results beside those of the stored series
// that they come from.
type Growth struct {
	Added  Size    // labels that any operation adds to a series, at most
	Series float64 // results that one series may become; 0: one at each step
}

// Bytes bounds what the results of n stored series add, over steps steps, if the values of their
// labels have at most longest bytes each. An operation's argument and result exist at once.
func (g Growth) Bytes(n, longest int, steps int64) int64 {
	series := g.Series
	if series == 0 {
		series = float64(steps)
	}
	return Saturated(2 * series * float64(n) * (g.Added.PerValue*float64(longest) + g.Added.Fixed))
}

// Saturated converts a number that may be too large for int64.
func Saturated(f float64) int64 {
	if f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// ResultBudget limits the intermediate results of one query. What grows with the data is counted
// as soon as the series are known, before anything is evaluated over them.
type ResultBudget struct {
	limit  int64 // bytes of added labels
	growth Growth
	steps  int64 // of one expression of the query, at most
	added  atomic.Int64
	copied map[*labels.Matcher]int64
}

// NewResultBudget returns the budget of a query that evaluates each of its expressions at no more
// than steps times, and may add limit bytes of labels.
func NewResultBudget(limit int64, growth Growth, steps int64) *ResultBudget {
	return &ResultBudget{limit: limit, growth: growth, steps: steps}
}

// Add counts the labels that the query adds to n more series, the values of whose labels have at
// most longest bytes each, and charges them to ctx's work. It fails with a *LimitError or a
// *memory.Error.
func (b *ResultBudget) Add(ctx context.Context, n, longest int) error {
	more := b.growth.Bytes(n, longest, b.steps)
	if more == 0 {
		return nil
	}
	if added := b.added.Add(min(more, 1<<60)); added > b.limit || added < 0 {
		return &LimitError{Limit: "bytes of labels that functions add per query", Value: b.limit, Needed: max(more, added), Flag: MemoryFlag}
	}
	return memory.Of(ctx).Charge(more)
}

// Found charges the labels of the series that a read has found to ctx's work. It fails with a
// *memory.Error.
func Found[S any](ctx context.Context, series []S, of func(*S) labels.Labels) error {
	work := memory.Of(ctx)
	if work == nil {
		return nil
	}
	total := int64(len(series)) * bytesPerSeries
	for i := range series {
		total += int64(of(&series[i]).ByteSize())
	}
	return work.Charge(total)
}

// Selected counts the labels that ctx's query adds to the series of one of its selectors. It fails
// as ResultBudget.Add does.
func Selected[S any](ctx context.Context, series []S, of func(*S) labels.Labels) error {
	b := From(ctx).Results
	if b == nil || b.growth.Added == (Size{}) {
		return nil
	}
	longest := 0
	for i := range series {
		of(&series[i]).Range(func(l labels.Label) { longest = max(longest, len(l.Value)) })
	}
	return b.Add(ctx, len(series), longest)
}

// Copies sets to how many times the engine copies the point of each series of a selector, by its
// first matcher. It is called before the engine runs.
func (b *ResultBudget) Copies(times map[*labels.Matcher]int64) { b.copied = times }

// Evaluated charges what the engine allocates for the results of n series of a selector before it
// checks their number, or whether the query has ended. It fails with a *memory.Error.
func Evaluated(ctx context.Context, n int, selector []*labels.Matcher) error {
	b := From(ctx).Results
	if b == nil {
		return nil
	}
	bytes := min(b.steps, firstPoints) * BytesPerPoint
	if len(selector) > 0 {
		bytes += b.copied[selector[0]] * bytesPerCopy
	}
	return memory.Of(ctx).Charge(int64(n) * bytes)
}

// Snapshot is a snapshot of one tenant that was taken for a query.
type Snapshot struct {
	catalog.Snapshot
	Wide bool // it has the objects of a range that is wider by replica.Around
	// Pinned means that another process has taken the snapshot: reads see its objects or fail.
	Pinned     bool
	MinT, MaxT int64 // ms: what a pinned snapshot of SQL has all objects of
	used       atomic.Bool
}

// IsPinned reports whether there is a snapshot that another process has taken.
func (s *Snapshot) IsPinned() bool { return s != nil && s.Pinned }

// Take returns the snapshot to the first caller only, unless it is pinned: a second call means that
// objects of it were gone, so its caller takes a fresh one.
func (s *Snapshot) Take(tenant string) (snap catalog.Snapshot, ok bool) {
	if s == nil || s.Tenant != tenant || s.used.Swap(true) && !s.Pinned {
		return catalog.Snapshot{}, false
	}
	return s.Snapshot, true
}
