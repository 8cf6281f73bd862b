package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
)

const seriesCount = 3

// lset is the label set of the n-th series.
func lset(n int) labels.Labels {
	return labels.FromStrings(model.MetricNameLabel, "m", "s", fmt.Sprint(n))
}

// point is where a value is.
type point struct {
	series int
	ts     int64 // ms
}

type sample struct {
	point
	v float64
}

// write is a value that was written to a point.
type write struct {
	rank ulid.ULID
	v    float64
	step int // at which it took effect
}

// tombstone is a deletion that took effect.
type tombstone struct {
	catalog.Tombstone
	step int
}

// truth is what readers must see. It knows what took effect: the segments that were put, and the tombstones that were ever committed.
type truth struct {
	written map[string][]sample // by segment key, before the put
	writes  map[point][]write
	tombs   []tombstone
	nonces  map[string]int // tombstones by the request that wanted them
	last    float64        // value
	matched map[match]bool
}

type match struct {
	nonce  string
	series int
}

// matches says whether a tombstone matches a series. It remembers the answers.
func (m *truth) matches(t *catalog.Tombstone, series int) bool {
	k := match{nonce(t), series}
	yes, known := m.matched[k]
	if !known {
		yes = t.Matches(lset(series))
		m.matched[k] = yes
	}
	return yes
}

func newTruth() *truth {
	return &truth{written: map[string][]sample{}, writes: map[point][]write{}, nonces: map[string]int{}, matched: map[match]bool{}}
}

// effect tells the truth what a put has changed.
func (w *world) effect(k string, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = w.changed || !strings.HasPrefix(k, key.BlocksPrefix(tenant))
	if seg, err := key.ParseSegment(k); err == nil {
		for _, s := range w.truth.written[k] {
			w.truth.writes[s.point] = append(w.truth.writes[s.point], write{seg.ID, s.v, w.steps})
		}
		return
	}
	if k != key.Manifest(tenant) {
		return
	}
	m, err := catalog.Decode(body)
	if err != nil {
		panic(err)
	}
	for _, t := range m.Tombstones {
		if n := len(w.truth.tombs); n == 0 || t.ID.Compare(w.truth.tombs[n-1].ID) > 0 {
			w.truth.tombs = append(w.truth.tombs, tombstone{t, w.steps})
			w.truth.nonces[nonce(&t)]++
		}
	}
}

// nonce names the request that a tombstone stems from: every one has a matcher of its own, which matches everything.
func nonce(t *catalog.Tombstone) string {
	return t.Matchers[len(t.Matchers)-1].Value
}

// moment says what a reader may know.
type moment struct {
	must   int       // writes that took effect before this step
	may    int       // writes that took effect before this step may be seen too
	tombs  int       // tombstones that took effect before this step apply
	newest ulid.ULID // tombstones above this do not; zero is no bound
	begun  int64     // writes that began later (ms, by their ULID) are not seen
	expiry int64     // before this timestamp (ms) anything may be missing, or may be what it was
}

// deleted says whether a write is deleted.
func (m *truth) deleted(p point, rank ulid.ULID, at moment) bool {
	for i := range m.tombs {
		t := &m.tombs[i]
		if t.step < at.tombs && (at.newest == ulid.ULID{} || t.ID.Compare(at.newest) <= 0) && rank.Compare(t.ID) < 0 && t.Covers(p.ts) && m.matches(&t.Tombstone, p.series) {
			return true
		}
	}
	return false
}

// judge compares what a reader saw at a point with what it must or may see.
func (m *truth) judge(p point, got float64, found bool, at moment) error {
	var base *write
	for i, c := range m.writes[p] {
		if c.step < at.must && int64(c.rank.Time()) <= at.begun && (base == nil || c.rank.Compare(base.rank) > 0) {
			base = &m.writes[p][i]
		}
	}
	gone := base == nil || m.deleted(p, base.rank, at)
	if found && !gone && got == base.v || !found && gone {
		return nil
	}
	for _, c := range m.writes[p] {
		ok := p.ts < at.expiry || c.step < at.may && (base == nil || c.rank.Compare(base.rank) > 0)
		if found && got == c.v && ok && int64(c.rank.Time()) <= at.begun && !m.deleted(p, c.rank, at) {
			return nil
		}
	}
	if !found && p.ts < at.expiry {
		return nil
	}
	want := "nothing"
	if !gone {
		want = fmt.Sprintf("%v, written at step %d with rank %s", base.v, base.step, base.rank)
	}
	return fmt.Errorf("series %d at %s: got %v (found: %v), want %s", p.series, time.UnixMilli(p.ts).UTC().Format("02T15:04:05"), got, found, want)
}

// compare holds the result of a read of everything against the model.
func (w *world) compare(who string, got map[point]float64, at moment) {
	w.mu.Lock()
	var failure error
	if r := w.set.retention; r > 0 {
		at.expiry = w.now.Add(-r + time.Minute).UnixMilli()
	}
	for p := range w.truth.writes {
		v, found := got[p]
		if err := w.truth.judge(p, v, found, at); err != nil {
			failure = fmt.Errorf("%s sees a wrong answer: %w", who, err)
		}
	}
	for p := range got {
		if _, ok := w.truth.writes[p]; !ok {
			failure = fmt.Errorf("%s sees what nobody wrote, at %v", who, p)
		}
	}
	w.mu.Unlock()
	if failure != nil {
		w.fail("%w", failure)
	}
}

// check reads everything after a step that may have changed what is visible, without taking a turn, and expects exactly what took effect.
func (w *world) check() {
	if !w.changed {
		return
	}
	w.changed = false
	for _, v := range w.mem.Violations() {
		w.fail("violation of the store's protocol: %s", v)
	}
	ctx := context.Background()
	snap, err := catalog.Take(ctx, w.mem, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		w.fail("snapshot: %w", err)
		return
	}
	got, err := w.gather(ctx, direct{w}, snap)
	if err != nil {
		w.fail("the omniscient reader fails: %w", err)
		return
	}
	now := w.steps + 1
	w.compare("the omniscient reader", got, moment{must: now, may: now, tombs: now, begun: 1 << 47})
	for n, times := range w.truth.nonces {
		if times > 1 {
			w.fail("the delete %s was applied %d times", n, times)
		}
	}
}

// quiesce lets one compactor work undisturbed until nothing is left to do, and looks at what is left then.
func (w *world) quiesce() {
	w.set.calm = true
	for range 60 {
		w.spawn("janitor", func(p *proc) {
			if w.set.handOut {
				w.handOut(p)
			} else {
				w.compact(p, 1)
			}
		})
		for w.settle(); len(w.pending) > 0 && w.failure == nil; w.settle() {
			o := w.pick()
			w.note("%s", o)
			w.steps++
			o.grant <- verdict{}
			w.settle()
			w.check()
		}
		w.advance(time.Hour)
	}
	if w.failure == nil {
		w.tidy()
	}
}

// tidy expects that nothing is left but live objects, and that all of them are 24h blocks.
func (w *world) tidy() {
	ctx := context.Background()
	snap, err := catalog.Take(ctx, w.mem, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		w.fail("snapshot: %w", err)
		return
	}
	m := snap.Manifest
	if len(snap.Segments)+len(m.Splits)+len(m.Consumed)+len(m.Retired)+len(m.Tombstones) > 0 {
		w.fail("after quiescence there are %d segments, %d splits, %d consumed, %d retired, %d tombstones", len(snap.Segments), len(m.Splits), len(m.Consumed), len(m.Retired), len(m.Tombstones))
	}
	live := map[string]bool{}
	for _, b := range m.Blocks {
		live[b.Key(tenant).Prefix()] = true
		if b.Level != key.L24h {
			w.fail("after quiescence there is block %s", b.BlockID())
		}
	}
	for _, k := range w.mem.Keys() {
		if b, _, err := key.ParseBlockFile(k); err == nil && !live[b.Prefix()] || strings.HasPrefix(k, key.SegmentsPrefix(tenant)) {
			w.fail("after quiescence there is garbage: %s", k)
		}
	}
}
