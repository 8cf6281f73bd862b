// Package quota counts what tenants write to this process, and refuses what exceeds their limits.
package quota

import (
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// Quota is what a tenant has used. It is safe for concurrent use.
type Quota struct {
	mu       sync.Mutex
	used     time.Time     // last
	requests *rate.Limiter // nil: no request was counted
	samples  *rate.Limiter
	bytes    *rate.Limiter
	hourly   filter
	daily    filter
}

// RateError reports that a tenant exceeds a rate.
type RateError struct {
	Limit string  // its name in the runtime configuration
	Flag  string  // the flag of its default
	Unit  string  // what is counted
	Rate  float64 // a second
	Burst int
	Asked int
	Wait  time.Duration // after which the same may succeed; 0: it never will
}

func (e *RateError) Error() string {
	if e.Wait == 0 {
		return settings.ForOperator(fmt.Sprintf("%d %s in one request, the limit is %d (%s of the tenant, or --%s): send fewer in a request",
			e.Asked, e.Unit, e.Burst, burstOf[e.Limit].limit, burstOf[e.Limit].flag))
	}
	return settings.ForOperator(fmt.Sprintf("too many %s: the limit is %s a second and %d at once (%s of the tenant, or --%s); try again in %s",
		e.Unit, strconv.FormatFloat(e.Rate, 'f', -1, 64), e.Burst, e.Limit, e.Flag, e.Wait.Round(time.Millisecond)))
}

// burstOf names the burst of each rate.
var burstOf = map[string]struct{ limit, flag string }{
	limitSamples:  {"ingestion_burst_size", "distributor.ingestion-burst-size"},
	limitBytes:    {"ingestion_bytes_burst_size", "distributor.ingestion-bytes-burst-size"},
	limitRequests: {"request_burst_size", "distributor.request-burst-size"},
}

// The rates, by their names in the runtime configuration.
const (
	limitSamples  = "ingestion_rate"
	limitBytes    = "ingestion_bytes_rate"
	limitRequests = "request_rate"
)

// Request counts a request, or returns a *RateError.
func (q *Quota) Request(l *admission.Limits, now time.Time) error {
	return q.take(&q.requests, now, RateError{Limit: limitRequests, Flag: "distributor.request-rate-limit", Unit: "write requests", Rate: l.RequestRate, Burst: l.RequestBurst, Asked: 1})
}

// Samples counts samples, or returns a *RateError.
func (q *Quota) Samples(l *admission.Limits, n int, now time.Time) error {
	return q.take(&q.samples, now, RateError{Limit: limitSamples, Flag: "distributor.ingestion-rate-limit", Unit: "samples", Rate: l.IngestionRate, Burst: l.IngestionBurst, Asked: n})
}

// Bytes counts bytes of request bodies, or returns a *RateError.
func (q *Quota) Bytes(l *admission.Limits, n int, now time.Time) error {
	return q.take(&q.bytes, now, RateError{Limit: limitBytes, Flag: "distributor.ingestion-bytes-rate-limit", Unit: "bytes", Rate: float64(l.BytesRate), Burst: int(l.BytesBurst), Asked: n})
}

// take takes from a bucket, or returns what lacks.
func (q *Quota) take(bucket **rate.Limiter, now time.Time, e RateError) error {
	if e.Rate == 0 || e.Asked == 0 {
		return nil
	}
	if e.Asked > e.Burst {
		return &e
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = now
	b := *bucket
	if b == nil {
		b = rate.NewLimiter(rate.Limit(e.Rate), e.Burst)
		*bucket = b
	}
	if b.Limit() != rate.Limit(e.Rate) {
		b.SetLimitAt(now, rate.Limit(e.Rate))
	}
	if b.Burst() != e.Burst {
		b.SetBurstAt(now, e.Burst)
	}
	if b.AllowN(now, e.Asked) {
		return nil
	}
	lacking := float64(e.Asked) - b.TokensAt(now)
	seconds := min(lacking/e.Rate, maxWait.Seconds())
	e.Wait = max(time.Millisecond, time.Duration(math.Ceil(seconds*1e9)))
	return &e
}

// maxWait is the longest wait that a sender is asked for.
const maxWait = time.Hour

// Series counts a series, or returns a *remotewrite.Rejection. A *memory.Error reports that the
// process has no memory to count it; the sender may try again.
func (q *Quota) Series(l *admission.Limits, lset []series.Label, now time.Time) error {
	id := identify(lset)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = now
	var fresh [2]*filter // those that do not have the series
	n := 0
	for _, p := range [...]struct {
		filter *filter
		limit  int
		reason remotewrite.Reason
		name   string
	}{
		{&q.hourly, l.MaxHourlySeries, remotewrite.ReasonHourlySeries, "hour"}, {&q.daily, l.MaxDailySeries, remotewrite.ReasonDailySeries, "day"},
	} {
		p.filter.at(now)
		if p.limit == 0 || p.filter.has(id) {
			continue
		}
		if p.filter.count >= p.limit {
			return &remotewrite.Rejection{Reason: p.reason, Err: fmt.Errorf("series %s is one more than the %d that the tenant may write in one %s (UTC)", remotewrite.Describe(lset), p.limit, p.name)}
		}
		fresh[n] = p.filter
		n++
	}
	for _, f := range fresh[:n] {
		if err := f.room(); err != nil {
			return fmt.Errorf("count series: %w", err)
		}
	}
	for _, f := range fresh[:n] {
		f.add(id)
	}
	return nil
}

// Quotas are those of all tenants.
type Quotas struct {
	// Memory is charged with what counts series; nil: it has no limit.
	Memory *memory.Budget

	mu    sync.Mutex
	all   map[string]*Quota
	sweep int // tenants at which the unused are dropped
}

// keep is how long an unused quota is kept: the series of its day count until then.
const keep = 24 * time.Hour

// Of returns the quota of a tenant.
func (qs *Quotas) Of(tenant string, now time.Time) *Quota {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q, ok := qs.all[tenant]; ok {
		return q
	}
	if len(qs.all) >= qs.sweep {
		for id, q := range qs.all {
			if q.idle(now) {
				q.release()
				delete(qs.all, id)
			}
		}
		qs.sweep = 2*len(qs.all) + 64
	}
	if qs.all == nil {
		qs.all = map[string]*Quota{}
	}
	q := &Quota{used: now, hourly: filter{period: time.Hour, memory: qs.Memory}, daily: filter{period: 24 * time.Hour, memory: qs.Memory}}
	qs.all[tenant] = q
	return q
}

// idle reports whether the quota may be forgotten. One without series is as good as new after
// maxWait.
func (q *Quota) idle(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	age := now.Sub(q.used)
	return age >= keep || age >= maxWait && q.hourly.count+q.daily.count == 0
}

// release gives back the memory of a quota that is forgotten. A request that still has it counts
// the series anew.
func (q *Quota) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hourly.release()
	q.daily.release()
	q.hourly, q.daily = filter{period: time.Hour}, filter{period: 24 * time.Hour}
}
