package lookup

import (
	"context"
	"slices"
	"sync"
	"unsafe"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
)

// again keeps the last small matches of one query: what the planner leaves to upstream's engine is
// asked for again by the engine.
type again struct {
	mu   sync.Mutex
	last []*matched // the oldest first
}

// matched is a match with the question that it answers.
type matched struct {
	objects    source.Identity
	tombstones *catalog.Tombstone // of the snapshot, the first one
	count      int                // of the tombstones
	mint, maxt int64
	sets       [][]*labels.Matcher
	match      *Match
}

const (
	// maxAgain is the number of matches that are kept.
	maxAgain = 16
	// maxAgainRows bounds the rows of a match that is kept.
	maxAgainRows = 4096
)

type againKey struct{}

// Sharing returns ctx of a query whose reads share matches.
func (*Tables) Sharing(ctx context.Context) context.Context {
	return context.WithValue(ctx, againKey{}, &again{})
}

// asked returns the matches that are shared with ctx, and a match without an answer.
func asked(ctx context.Context, snap *catalog.Snapshot, mint, maxt int64, sets [][]*labels.Matcher) (*again, *matched) {
	a, ok := ctx.Value(againKey{}).(*again)
	if !ok {
		return nil, nil
	}
	return a, &matched{
		objects: source.Identify(*snap), tombstones: unsafe.SliceData(snap.Tombstones), count: len(snap.Tombstones),
		mint: mint, maxt: maxt, sets: sets,
	}
}

// find returns the match that answers the same question, nil if there is none. Its slices are
// shared.
func (a *again) find(q *matched) *Match {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.last {
		if x.objects == q.objects && x.tombstones == q.tombstones && x.count == q.count && x.mint == q.mint && x.maxt == q.maxt && slices.EqualFunc(x.sets, q.sets, EqualMatchers) {
			m := *x.match
			m.Rows = slices.Clone(m.Rows) // the caller may replace them
			return &m
		}
	}
	return nil
}

// keep keeps a match of the question unless it is large.
func (a *again) keep(q *matched, m *Match) {
	n := 0
	for _, rows := range m.Rows {
		n += len(rows)
	}
	if n > maxAgainRows {
		return
	}
	own := *m
	own.Rows = slices.Clone(m.Rows)
	q.match = &own
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.last) == maxAgain {
		a.last = slices.Delete(a.last, 0, 1)
	}
	a.last = append(a.last, q)
}

// EqualMatchers reports whether two lists of matchers are equal.
func EqualMatchers(a, b []*labels.Matcher) bool {
	return slices.EqualFunc(a, b, func(a, b *labels.Matcher) bool {
		return a == b || a.Type == b.Type && a.Name == b.Name && a.Value == b.Value
	})
}
