package usage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/store/objstore"
)

// Report is what was counted of a tenant.
type Report struct {
	Since       time.Time // every query since then was counted
	Used, Limit int64     // bytes: of the counts in this process's memory, for all tenants

	counts tally
}

// Of returns what was counted of a tenant until now: what is in the store, and what this process
// has counted since it saved. Errors: of the store; ErrVersion; others mean that the object in the
// store is damaged.
func (c *Counter) Of(ctx context.Context, tenant string) (Report, error) {
	own, since, lost := c.own(tenant)
	c.mu.Lock()
	r := Report{Used: c.used, Limit: c.settings.Bytes}
	c.mu.Unlock()
	doc, _, err := c.read(ctx, tenant)
	switch {
	case err == nil:
		since, r.counts = doc.Since, doc.tally()
	case !errors.Is(err, objstore.ErrNotFound):
		return Report{}, err
	}
	for i := range own {
		lost = max(lost, own[i].lost)
		if !slices.Contains(doc.Saves, own[i].id) { // it may have been saved meanwhile
			r.counts.addAll(&own[i].tally)
		}
	}
	r.Since = time.UnixMilli(max(since, lost))
	return r, nil
}

// own returns copies of a tenant's batches in memory, the begin of their spans, and the newest time
// at which a query was not counted (both ms). If there is no batch, it begins one, so that the next
// save makes an object also if no query asks for anything.
func (c *Counter) own(tenant string) (own []batch, since, lost int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.now().UnixMilli()
	if c.settings.Bytes == 0 || c.batch(tenant, at) == nil {
		lost = at
	}
	since = c.from
	for _, b := range []*batch{c.frozen[tenant], c.fresh[tenant]} {
		if b != nil {
			since = min(since, b.from)
			own = append(own, batch{tally: b.tally.clone(), id: b.id, lost: b.lost})
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
