package ingest

import "github.com/promlake/promlake/internal/key"

// rotate replaces the generation when a new window has begun on the wall clock or the tenant knows
// too much.
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

// limitKnown is called before a request is decoded: refused requests teach label sets, too, and no
// flush follows them.
func (t *tenantIngest) limitKnown() {
	t.rotating.Lock()
	defer t.rotating.Unlock()
	t.count()
	if t.knowsTooMuch() {
		t.renew()
	}
}

// unlearn removes a forgotten tenant from the sum over all tenants.
func (t *tenantIngest) unlearn() {
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

// knowsTooMuch reports whether the tenant's limit is exceeded, or the limit of all tenants while
// this one takes more than an equal share of it. The caller holds t.rotating.
func (t *tenantIngest) knowsTooMuch() bool {
	set := &t.stage.set
	if t.counted > set.MaxSeriesBytes {
		return true
	}
	return t.stage.known.Load() > set.MaxKnownBytes && t.counted > set.MaxKnownBytes/int64(max(1, t.stage.active.Load()))
}

// renew replaces the generation by an empty one. The caller holds t.rotating.
func (t *tenantIngest) renew() {
	t.known.Store(newGeneration())
	t.stage.known.Add(-t.counted)
	t.counted = 0
}
