package ingest

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/ingest/quota"
)

// tenantIngest is one tenant's part of the stage: what it has learned, and what groups its requests
// and makes segments of them.
type tenantIngest struct {
	stage    *Stage
	id       string
	groups   *group.Collector // counts the requests under way in every mode; groups form, and a flusher takes them, in mode Grouped only
	segments segmentWriter
	done     chan struct{} // closed when no flusher runs (any more)
	used     time.Time     // when the last request came; guarded by Stage.mu

	quota    *quota.Quota
	known    atomic.Pointer[knowledge]
	rotating sync.Mutex // guards the fields below, and that one goroutine at a time replaces known; never held while a segment is written
	window   key.Window // wall-clock window of known
	counted  int64      // bytes of known that stage.known has
}

// knowledge is what a tenant's writers have learned, and the rules under which: known series are
// not checked again.
type knowledge struct {
	*remotewrite.Generation
	limits *admission.Limits // nil: no request was checked
	hour   int64             // of the clock, in which its series are counted
}

// tenantBytes is about the memory of a tenant that has written little, without what it has learned.
const tenantBytes = 36 << 10

// newTenant returns a tenant, which unlearn ends. It returns a *memory.Error if the process has no
// room for it.
func (s *Stage) newTenant(id string) (*tenantIngest, error) {
	if err := s.memory.TryAcquire(tenantBytes); err != nil {
		return nil, err
	}
	t := &tenantIngest{
		stage: s, id: id, done: make(chan struct{}),
		segments: segmentWriter{tenant: id, store: s.store, now: s.now, met: s.met, recent: s.recent},
		groups:   group.NewCollector(s.set.pace(s.store), s.now),
		window:   key.WindowOf(s.now().UnixMilli()),
		quota:    s.quotas.Of(id, s.now()),
	}
	t.known.Store(&knowledge{Generation: newGeneration()})
	if s.set.Mode == Grouped {
		go t.run()
	} else {
		close(t.done)
	}
	return t, nil
}

// run flushes group after group until the stage closes or the tenant has been idle for long.
func (t *tenantIngest) run() {
	defer close(t.done)
	for {
		g := t.groups.Next(t.stage.ctx, t.stage.set.TenantIdle)
		switch {
		case g != nil:
			ctx, cancel := context.WithTimeout(t.stage.ctx, t.stage.set.FlushTimeout)
			err := t.flush(ctx, g.Batches)
			cancel()
			if err != nil {
				e := notDurable(err)
				t.stage.log.Error("flush failed; senders were told to try again", "reference", e.reference, "tenant", t.id, "samples", g.Samples, "requests", len(g.Batches), "err", err)
				err = e
			}
			g.Finish(err)
			t.groups.Flushed()
		case t.stage.ctx.Err() != nil:
			if g := t.groups.Stop(group.ErrClosing); g != nil {
				g.Finish(group.ErrClosing)
			}
			return
		case t.stage.forget(t):
			return
		}
	}
}

// flush makes batches durable. It returns nil only when all of their segments are.
func (t *tenantIngest) flush(ctx context.Context, bs []*remotewrite.Batch) error {
	defer t.rotate()
	s := t.stage
	begin := s.now()
	all, err := t.segments.encode(bs, func() (ulid.ULID, bool) { return s.ids.next(s.now()), false })
	if err == nil {
		err = t.segments.put(ctx, all)
	}
	s.met.flushed(remotewrite.TallyOf(bs...), err, s.now().Sub(begin))
	if err != nil {
		return err
	}
	for _, b := range bs {
		b.Generation.Stored.Note(b.Metadata)
		b.Generation.Untimed.Note(b.Exemplars)
	}
	return nil
}

func newGeneration() *remotewrite.Generation { return remotewrite.NewGeneration(newSeed()) }

// newSeed returns a seed that senders do not know.
func newSeed() uint64 {
	var seed [8]byte
	// crypto/rand.Read never fails (Go 1.24 and later).
	_, _ = rand.Read(seed[:])
	return binary.LittleEndian.Uint64(seed[:])
}

// rotate replaces the generation by the next one when a new window has begun on the wall clock, and
// by an empty one when it is outgrown.
func (t *tenantIngest) rotate() {
	w := key.WindowOf(t.stage.now().UnixMilli())
	t.rotating.Lock()
	defer t.rotating.Unlock()
	t.count()
	k := t.known.Load()
	switch {
	case t.outgrown():
		t.renew(k.limits)
	case w != t.window:
		t.known.Store(&knowledge{t.segments.next(k.Generation), k.limits, k.hour})
		t.count()
	}
	t.window = w
}

// learning returns the knowledge with which a request is decoded under limits. It is bounded here:
// refused requests teach label sets, too, and no flush follows them. Other limits begin another
// generation, and so does another hour in which series are counted, because only series that are
// new to a generation are checked and counted.
func (t *tenantIngest) learning(l *admission.Limits) *knowledge {
	t.rotating.Lock()
	defer t.rotating.Unlock()
	t.count()
	k := t.known.Load()
	if k.limits != l || l.CountsSeries() && k.hour != t.hour() || t.outgrown() {
		t.renew(l)
	}
	return t.known.Load()
}

// hour is the number of the clock's hour.
func (t *tenantIngest) hour() int64 { return t.stage.now().Unix() / 3600 }

// unlearn gives back the memory of a forgotten tenant, and removes it from the sum over all
// tenants.
func (t *tenantIngest) unlearn() {
	t.stage.memory.Release(tenantBytes)
	t.rotating.Lock()
	defer t.rotating.Unlock()
	t.stage.known.Add(-t.counted)
	t.counted = 0
}

// count brings the sum over all tenants up to date. The caller holds t.rotating.
func (t *tenantIngest) count() {
	n := t.known.Load().Bytes()
	t.stage.known.Add(n - t.counted)
	t.counted = n
}

// outgrown reports whether the tenant must learn anew: the generation is defective, or the tenant's
// limit is exceeded, or the limit of all tenants while this one takes more than an equal share of
// it. The caller holds t.rotating.
func (t *tenantIngest) outgrown() bool {
	set := &t.stage.set
	if t.known.Load().Defective.Load() || t.counted > set.MaxSeriesBytes {
		return true
	}
	return t.stage.known.Load() > set.MaxKnownBytes && t.counted > set.MaxKnownBytes/int64(max(1, t.stage.active.Load()))
}

// renew replaces the generation by an empty one. The caller holds t.rotating.
func (t *tenantIngest) renew(l *admission.Limits) {
	t.known.Store(&knowledge{newGeneration(), l, t.hour()})
	t.stage.known.Add(-t.counted)
	t.counted = 0
}
