package sim

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

const seriesCount = 3

// lset is the label set of the n-th series.
func lset(n int) labels.Labels {
	return labels.FromStrings(model.MetricNameLabel, "m", "s", fmt.Sprint(n))
}

// point is a series and a time.
type point struct {
	series int
	ts     int64 // ms
}

type sample struct {
	point
	v float64
}

// never is a step that is never reached.
const never = math.MaxInt

// write is a request of a sender. Its steps and times are those of the world, not of a process.
type write struct {
	began  int // step at which it was acknowledged, or never
	acked  int // step at which it was acknowledged; never, if it was not
	last   int // step at which it last changed the store or the queue
	shown  int // step from which its samples could be listed
	queued bool
	sent   time.Time // when the queue first received it
	resent time.Time // when the queue last received it; a request that was sent again has several messages
	listed time.Time // time from which its samples could be listed
	stored time.Time // Modified of its newest segment; a request that was sent again has several
	first  time.Time // Modified of its oldest segment
}

// value is the value of a write at a point.
type value struct {
	*write
	v float64
}

// deletion is a request to delete.
type deletion struct {
	matches    [seriesCount]bool
	mint, maxt int64
	began      int
	acked      int
	effect     int // step at which its tombstone was committed, or never
	generation uint64
	times      int // number of commits of the tombstone
}

func (d *deletion) covers(p point) bool {
	return d.matches[p.series] && d.mint <= p.ts && p.ts <= d.maxt
}

// truth holds the acknowledgements of senders, in order.
type truth struct {
	values    map[point][]value
	segments  map[string][]*write // by segment key
	contents  map[string][]sample
	deletions map[string]*deletion // by nonce
	last      float64              // value
}

func newTruth() *truth {
	return &truth{values: map[point][]value{}, segments: map[string][]*write{}, contents: map[string][]sample{}, deletions: map[string]*deletion{}}
}

// effect records in the truth what a put has changed.
func (w *world) effect(k string, body []byte, etag string, modified time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	w.changed = w.changed || !strings.HasPrefix(k, key.BlocksPrefix(tenant))
	for _, x := range w.truth.segments[k] {
		if x.shown == never {
			x.shown, x.listed, x.first = w.steps, w.now, modified
		}
		x.stored, x.last = modified, w.steps
	}
	if k != key.Manifest(tenant) {
		return
	}
	m, err := catalog.Decode(body)
	if err != nil {
		panic(err)
	}
	w.known = catalog.Version{Manifest: m, ETag: etag}
	for _, t := range m.Tombstones {
		if d := w.truth.deletions[nonce(&t)]; d.effect == never {
			d.effect, d.generation = w.steps, m.Generation
		}
	}
	for n, d := range w.truth.deletions {
		count := 0
		for _, t := range m.Tombstones {
			if nonce(&t) == n {
				count++
			}
		}
		d.times = max(d.times, count)
	}
}

// nonce identifies the request of a tombstone: every request has a matcher of its own, which
// matches everything.
func nonce(t *catalog.Tombstone) string { return t.Matchers[len(t.Matchers)-1].Value }

// moment describes what a reader may have read.
type moment struct {
	began  int // step before which it listed
	read   int // step at which it read the manifest
	asOf   time.Time
	gen    uint64 // of the manifest, with asOf
	expiry int64  // samples before this timestamp (ms) may be missing or present
}

// slack bounds how much the times of the store, of the queue and in a manifest differ.
const slack = 8 * time.Second

// place returns the position of a value's newest copy in the order of writes, by the store's or the
// queue's clock.
func (x *value) place() time.Time {
	if x.queued {
		return x.resent
	}
	return x.stored
}

// oldest returns the position of a value's oldest copy.
func (x *value) oldest() time.Time {
	if x.queued {
		return x.sent
	}
	return x.first
}

// must reports whether the reader sees the write unless another one hides it.
func (m moment) must(x *value) bool {
	return x.shown < m.began && (m.asOf.IsZero() || x.oldest().Before(m.asOf.Add(-slack)) && x.listed.Before(m.asOf.Add(-slack)))
}

// may reports whether the reader may see the write.
func (m moment) may(x *value) bool {
	return x.shown < m.read && (m.asOf.IsZero() || x.oldest().Before(m.asOf.Add(slack)))
}

// effective reports whether a deletion is certainly, or possibly, in effect for the reader.
func (m moment) effective(d *deletion) (certain, possible bool) {
	if !m.asOf.IsZero() {
		yes := d.effect < m.read && d.generation <= m.gen
		return yes, yes
	}
	return d.acked < m.began, d.effect < m.read
}

// view is the truth for a reader.
type view struct {
	moment
	deletions []inEffect
}

// inEffect is a deletion that is certainly, or possibly, in effect.
type inEffect struct {
	*deletion
	certain, possible bool
}

func (t *truth) view(m moment) view {
	v := view{moment: m}
	for _, d := range t.deletions {
		if certain, possible := m.effective(d); certain || possible {
			v.deletions = append(v.deletions, inEffect{d, certain, possible})
		}
	}
	return v
}

// deleted reports whether a write is certainly, or possibly, deleted for the reader. The order of
// acknowledgements decides.
func (v *view) deleted(p point, x *value) (certain, possible bool) {
	for _, d := range v.deletions {
		if d.covers(p) {
			certain = certain || d.certain && x.acked < d.began
			possible = possible || d.possible && x.began <= d.acked
		}
	}
	return certain, possible
}

// newer reports whether x certainly hides c: x began after c was over, and the protocol makes a
// promise about them.
func newer(x, c *value, resolution time.Duration) bool {
	if x.began <= c.last || c.acked != never && x.began <= c.acked {
		return false
	}
	switch {
	case x.queued && x.listed.Sub(x.sent) > settleDelay-slack:
		return false // late: a merge may have passed it
	case x.queued && c.queued:
		return x.sent.UnixMilli()/key.QueueMillis > c.resent.UnixMilli()/key.QueueMillis
	case c.queued: // its segment may hold messages up to the end of its period
		return x.oldest().Sub(c.place()) > slack+time.Duration(key.QueueMillis)*time.Millisecond
	case x.queued:
		return x.sent.Sub(c.place()) > slack
	}
	return resolution == 0 || x.first.Truncate(resolution).After(c.stored.Truncate(resolution))
}

// judge compares the value that a reader saw at a point with the required and the permitted ones.
func (v *view) judge(p point, values []value, got float64, found bool, resolution time.Duration) error {
	if p.ts < v.expiry && !found {
		return nil
	}
	if !found {
		for i := range values {
			x := &values[i]
			if _, possible := v.deleted(p, x); v.must(x) && !possible {
				return fmt.Errorf("%s is missing", x)
			}
		}
		return nil
	}
	for i := range values {
		c := &values[i]
		if c.v != got {
			continue
		}
		if !v.may(c) {
			return fmt.Errorf("%s is there too early", c)
		}
		if certain, _ := v.deleted(p, c); certain {
			return fmt.Errorf("%s was deleted", c)
		}
		for j := range values {
			x := &values[j]
			if p.ts < v.expiry || !v.must(x) || !newer(x, c, resolution) {
				continue
			}
			if _, possible := v.deleted(p, x); !possible {
				return fmt.Errorf("%s hides the newer %s", c, x)
			}
		}
		return nil
	}
	return fmt.Errorf("nobody wrote %v", got)
}

func (x *value) String() string {
	how := fmt.Sprintf("stored %s", x.stored.Format("02T15:04:05.000"))
	if x.queued {
		how = fmt.Sprintf("sent %s, listed %s", x.sent.Format("02T15:04:05.000"), x.listed.Format("02T15:04:05"))
	}
	return fmt.Sprintf("%v (began at step %d, acknowledged %d, %s)", x.v, x.began, x.acked, how)
}

// compare compares the result of a read of everything with the model.
func (w *world) compare(who string, got map[point]float64, at moment) {
	w.mu.Lock()
	var failure error
	if r := w.set.retention; r > 0 {
		at.expiry = w.now.Add(-r + time.Minute).UnixMilli()
	}
	view := w.truth.view(at)
	for p, values := range w.truth.values {
		v, found := got[p]
		if err := view.judge(p, values, v, found, w.set.resolution); err != nil {
			failure = fmt.Errorf("%s sees a wrong answer: series %d at %s: %w", who, p.series, time.UnixMilli(p.ts).UTC().Format("02T15:04:05"), err)
		}
	}
	for p := range got {
		if _, ok := w.truth.values[p]; !ok {
			failure = fmt.Errorf("%s sees what nobody wrote, at %v", who, p)
		}
	}
	w.mu.Unlock()
	if failure != nil {
		w.fail("%w", failure)
	}
}

// check reads everything after a step that may have changed the visible samples; its operations do
// not wait for turns.
func (w *world) check() {
	if !w.changed {
		return
	}
	w.changed = false
	for _, v := range w.mem.Violations() {
		w.fail("violation of the store's protocol: %s", v)
	}
	ctx := context.Background()
	l, err := catalog.List(ctx, w.mem, tenant, key.MinTime, key.MaxTime)
	if err == nil {
		w.known, err = catalog.Refresh(ctx, w.mem, tenant, w.known)
	}
	if err != nil {
		w.fail("snapshot: %w", err)
		return
	}
	got, err := w.gather(ctx, direct{w}, l.With(w.known.Manifest))
	if err != nil {
		w.fail("the omniscient reader fails: %w", err)
		return
	}
	now := w.steps + 1
	w.compare("the omniscient reader", got, moment{began: now, read: now})
	for n, d := range w.truth.deletions {
		if d.times > 1 {
			w.fail("the delete %s was applied %d times", n, d.times)
		}
	}
}

// quiesce runs one compactor without faults until no job is ready, then checks the remaining
// objects. After a cycle that changed nothing, more time passes before the next one.
func (w *world) quiesce() {
	const rest = 70 // hours
	w.set.calm = true
	horizon := w.set.queued // is still to pass
	for hour := 0; hour < rest || horizon; {
		before := w.changes
		w.spawn("janitor", func(p *proc) {
			if w.set.handOut {
				w.handOut(p)
			} else {
				w.compact(p, 1)
			}
		})
		for w.settle(); len(w.pending) > 0 && w.failure == nil; w.settle() {
			o := w.pick()
			if o == nil {
				continue
			}
			w.note(o, verdict{})
			w.steps++
			o.grant <- verdict{}
			w.settle()
			w.check()
		}
		pause := 1
		if w.changes == before {
			pause = 6
		}
		hour += pause
		w.advance(time.Duration(pause) * time.Hour)
		if horizon && hour >= rest-10 { // until no message that a tombstone covers can be delivered
			w.advance(catalog.QueueHorizon)
			hour, horizon = rest-10, false
		}
	}
	if w.failure == nil {
		w.tidy()
	}
}

// tidy expects that only live objects remain, and that all of them are 24h blocks.
func (w *world) tidy() {
	ctx := context.Background()
	snap, err := catalog.Take(ctx, w.mem, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		w.fail("snapshot: %w", err)
		return
	}
	m := snap.Manifest
	if len(snap.Segments)+len(m.Splits)+len(m.Consumed)+len(m.Retired)+len(m.Tombstones)+len(m.Sealed) > 0 {
		w.fail("after quiescence there are %d segments, %d splits, %d consumed, %d retired, %d tombstones, %d sealed", len(snap.Segments), len(m.Splits),
			len(m.Consumed), len(m.Retired), len(m.Tombstones), len(m.Sealed))
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
