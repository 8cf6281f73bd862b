package ingest

import "github.com/promlake/promlake/internal/key"

// rotate begins a new generation when a window has passed on the wall clock or the current one is
// too large.
func (t *tenantIngest) rotate() {
	w := key.WindowOf(t.stage.now().UnixMilli())
	t.rotating.Lock()
	defer t.rotating.Unlock()
	t.count()
	if w != t.window || t.knowsTooMuch() {
		t.window = w
		t.renew()
	}
}

// limitKnown is rotate for a request that may learn much: also requests that are refused teach
// label sets, and no flush follows them.
func (t *tenantIngest) limitKnown() {
	t.rotating.Lock()
	defer t.rotating.Unlock()
	t.count()
	if t.knowsTooMuch() {
		t.renew()
	}
}

// unlearn takes a tenant that is forgotten out of the sum over all.
func (t *tenantIngest) unlearn() {
	t.rotating.Lock()
	defer t.rotating.Unlock()
	t.stage.known.Add(-t.counted)
	t.counted = 0
}

// count brings the sum over all tenants up to date. The caller holds t.rotating.
func (t *tenantIngest) count() {
	n := t.gen.Load().Bytes()
	t.stage.known.Add(n - t.counted)
	t.counted = n
}

// knowsTooMuch says whether the tenant's limit is exceeded, or that of all tenants while this one
// takes more than an equal share of it. The caller holds t.rotating.
func (t *tenantIngest) knowsTooMuch() bool {
	set := &t.stage.set
	if t.counted > set.MaxSeriesBytes {
		return true
	}
	return t.stage.known.Load() > set.MaxKnownBytes && t.counted > set.MaxKnownBytes/int64(max(1, t.stage.active.Load()))
}

// renew replaces the generation by an empty one. The caller holds t.rotating.
func (t *tenantIngest) renew() {
	t.gen.Store(t.stage.newGeneration())
	t.stage.known.Add(-t.counted)
	t.counted = 0
}
