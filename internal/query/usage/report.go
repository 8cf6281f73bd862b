package usage

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Report is what was counted of a tenant.
type Report struct {
	Since       time.Time // every query since then was counted
	Used, Limit int64     // bytes: of the counts in this process's memory, for all tenants

	// Free means that requests to the store and the time of queries cost nothing: it is a directory.
	Free bool

	counts tally
	spent  spending
}

// maxTenants is the number of tenants of which one request may ask what was counted.
const maxTenants = 10_000

// OfAll returns what was counted of each tenant of the store, as Of does.
func (c *Counter) OfAll(ctx context.Context) (map[string]Report, error) {
	tenants, err := catalog.Tenants(ctx, c.store)
	if err != nil {
		return nil, err
	}
	if n := len(tenants); n > maxTenants {
		return nil, request.TooManyTenants(maxTenants, n)
	}
	var mu sync.Mutex
	out := make(map[string]Report, len(tenants))
	return out, telemetry.Each(ctx, savesAtOnce, tenants, func(ctx context.Context, _ int, tenant string) error {
		r, err := c.of(ctx, tenant, false)
		mu.Lock()
		defer mu.Unlock()
		out[tenant] = r
		return err
	})
}

// Of returns what was counted of a tenant until now: what is in the store, and what this process
// has counted since it saved. Errors: of the store; ErrVersion; others mean that the object in the
// store is damaged.
func (c *Counter) Of(ctx context.Context, tenant string) (Report, error) {
	return c.of(ctx, tenant, true)
}

func (c *Counter) of(ctx context.Context, tenant string, begin bool) (Report, error) {
	own, since, lost := c.own(tenant, begin)
	c.mu.Lock()
	_, local := c.store.(objstore.Local)
	r := Report{Used: c.used, Limit: c.settings.Bytes, Free: local}
	c.mu.Unlock()
	doc, _, err := c.read(ctx, tenant)
	switch {
	case err == nil:
		since, r.counts, r.spent = doc.Since, doc.tally(), doc.Spent
	case !errors.Is(err, objstore.ErrNotFound):
		return Report{}, err
	}
	if r.spent == nil {
		r.spent = spending{}
	}
	for i := range own {
		lost = max(lost, own[i].lost)
		if !slices.Contains(doc.Saves, own[i].id) { // it may have been saved meanwhile
			r.counts.addAll(&own[i].tally)
			r.spent.addAll(own[i].spent)
		}
	}
	r.Since = time.UnixMilli(max(since, lost))
	return r, nil
}

// own returns copies of a tenant's batches in memory, the begin of their spans, and the newest time
// at which a query was not counted (both ms). If there is no batch and begin is true, it begins
// one, so that the next save makes an object also if no query asks for anything.
func (c *Counter) own(tenant string, begin bool) (own []batch, since, lost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.now().UnixMilli()
	if c.settings.Bytes == 0 || begin && c.batch(tenant, at) == nil {
		lost = at
	}
	since = c.from
	for _, b := range []*batch{c.frozen[tenant], c.fresh[tenant]} {
		if b != nil {
			since = min(since, b.from)
			own = append(own, batch{tally: b.tally.clone(), spent: b.spent.clone(), id: b.id, lost: b.lost})
		}
	}
	return own, since, lost
}

// Metrics returns for each metric how many queries asked for it, by its name or by a pattern that
// matches it. A query that did both counts twice.
func (r *Report) Metrics(names []string) []Asked {
	out := make([]Asked, len(names))
	for i, name := range names {
		out[i] = r.counts[metrics][name]
	}
	for text, a := range r.counts[patterns] {
		m, err := labels.NewMatcher(labels.MatchRegexp, model.MetricNameLabel, text)
		if err != nil {
			continue // a later version may know more expressions
		}
		for i, name := range names {
			if m.Matches(name) {
				out[i] = out[i].plus(a)
			}
		}
	}
	return out
}

// Labels returns for each label how many queries asked for it.
func (r *Report) Labels(names []string) []Asked {
	out := make([]Asked, len(names))
	for i, name := range names {
		out[i] = r.counts[labelNames][name]
	}
	return out
}
