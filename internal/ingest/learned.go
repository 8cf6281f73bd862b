package ingest

import (
	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/format/key"
)

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

// unlearn gives back the memory of a forgotten tenant, and removes it from the sum over all tenants.
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
