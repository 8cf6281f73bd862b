package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/query/request"
)

// Token is the kind of what the queries of a token took; the other kinds are those of sources.
const Token = "token"

// Spent is what queries took.
type Spent struct {
	Title        string `json:"title,omitempty"` // of their source, as it was named last
	Queries      int64  `json:"queries"`
	Microseconds int64  `json:"microseconds"` // that they ran
	Bytes        int64  `json:"bytes"`        // of objects that they read, cached or not
	Requests     int64  `json:"requests"`     // to the store, for objects
}

func (s Spent) plus(o Spent) Spent {
	return Spent{cmp.Or(o.Title, s.Title), s.Queries + o.Queries, s.Microseconds + o.Microseconds, s.Bytes + o.Bytes, s.Requests + o.Requests}
}

// Dollars returns the list price of the requests, and of a query function of the stack's default
// memory for the time.
func (s Spent) Dollars() float64 { return cost.Spent(s.Seconds(), s.Queries, s.Requests) }

// Seconds returns the time.
func (s Spent) Seconds() float64 { return float64(s.Microseconds) / 1e6 }

// spending is what queries took, by UTC day (2026-11-30), then by kind and name (dashboard/x). What
// had no room of its own has an empty name.
type spending map[string]map[string]Spent

func (s spending) add(day, name string, one Spent) {
	if s[day] == nil {
		s[day] = map[string]Spent{}
	}
	s[day][name] = s[day][name].plus(one)
}

func (s spending) addAll(of spending) {
	for day, all := range of {
		for name, one := range all {
			s.add(day, name, one)
		}
	}
}

func (s spending) clone() spending {
	out := spending{}
	for day, all := range s {
		out[day] = maps.Clone(all)
	}
	return out
}

// prune removes the days before a time, and gives up the names of the oldest days until all take at
// most limit bytes of memory, about.
func (s spending) prune(since time.Time, limit int64) {
	first, used := since.UTC().Format(time.DateOnly), int64(0)
	maps.DeleteFunc(s, func(day string, _ map[string]Spent) bool { return day < first })
	for _, all := range s {
		for name, one := range all {
			used += entrySize(name + one.Title)
		}
	}
	for _, day := range slices.Sorted(maps.Keys(s)) {
		if used <= limit {
			return
		}
		all := s[day]
		s[day] = nil
		for name, one := range all {
			kind, _, _ := strings.Cut(name, "/")
			used -= entrySize(name + one.Title)
			one.Title = ""
			s.add(day, kind+"/", one)
		}
	}
}

// Source is what the queries of a source, or of a token, took.
type Source struct {
	Kind, Name string // Name "": the others, for which there was no room
	Spent
}

// Spent returns what queries took on the UTC days from one time to another, by source and token,
// and in total.
func (r *Report) Spent(from, to time.Time) (all []Source, total Spent) {
	first, last, sums := from.UTC().Format(time.DateOnly), to.UTC().Format(time.DateOnly), spending{}
	for day, of := range r.spent {
		if day >= first && day <= last {
			sums.addAll(spending{"": of})
		}
	}
	for name, one := range sums[""] {
		kind, name, _ := strings.Cut(name, "/")
		if all = append(all, Source{kind, name, one}); kind != Token {
			total = total.plus(one)
		}
	}
	total.Title = ""
	slices.SortFunc(all, func(a, b Source) int {
		return cmp.Or(cmp.Compare(b.Microseconds, a.Microseconds), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return all, total
}

// known is what queries of a tenant took, as it was known at a time.
type known struct {
	at     time.Time
	report Report
}

const (
	// knownFor is how long Within takes what it has read as known.
	knownFor = time.Minute
	// maxKnown is the number of tenants of which it remembers that.
	maxKnown = 1000
)

// Within returns a *request.LimitError if what a tenant's queries took on this UTC day or in this
// month has reached its allowance, or what those of one of its tokens took that of the token. It
// knows what other processes have saved, and what this one has counted, a minute ago at most. Where
// that cannot be read, it logs that, and returns nil for a minute.
func (c *Counter) Within(ctx context.Context, tenant string, its auth.Allowance, token string, ofToken auth.Allowance) error {
	now := c.now().UTC()
	k := c.knownOf(ctx, tenant, now)
	if k.report.Free {
		return nil
	}
	for _, span := range []struct {
		name, flag        string
		from              time.Time
		ofTenant, ofToken float64
	}{
		{"day", "--query.max-dollars-per-day", now, its.Day, ofToken.Day},
		{"month", "--query.max-dollars-per-month", time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), its.Month, ofToken.Month},
	} {
		all, total := k.report.Spent(span.from, now)
		if limit := span.ofTenant; limit > 0 && total.Dollars() >= limit {
			return request.SpentAll("tenant "+tenant, span.name, span.flag, limit, total.Dollars())
		}
		i := slices.IndexFunc(all, func(s Source) bool { return s.Kind == Token && s.Name == token })
		if limit := span.ofToken; limit > 0 && i >= 0 && all[i].Dollars() >= limit {
			return request.SpentAll("token "+token, span.name, span.flag, limit, all[i].Dollars())
		}
	}
	return nil
}

// knownOf returns what is known of a tenant at a time.
func (c *Counter) knownOf(ctx context.Context, tenant string, now time.Time) known {
	c.mu.Lock()
	e := c.recent.Get(tenant)
	c.mu.Unlock()
	if e != nil && now.Sub(e.Value.at) <= knownFor {
		return e.Value
	}
	report, err := c.of(ctx, tenant, false)
	if err != nil {
		c.log.Warn("what queries took cannot be read; allowances are not checked for a minute", "tenant", tenant, "err", err)
	}
	k := known{now, report}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.recent.Get(tenant); e != nil {
		c.recent.Remove(e)
	}
	c.recent.Add(tenant, k, 1)
	c.recent.Evict(0)
	return k
}
