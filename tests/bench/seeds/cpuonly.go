package seeds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/table"
)

const (
	tsbsInterval = 10 * time.Second
	tsbsSlice    = 100 * time.Second // 10,000 samples in a request
	tsbsVariants = 20                // of a query, each of other hosts and another time
	tsbsFew      = 8                 // hosts of a query of several
)

// day is when the data begins: in the past, so that all its windows are closed, at the beginning of
// one of 24 hours.
var day = time.Date(2026, time.March, 3, 0, 0, 0, 0, time.UTC)

// CPUOnly is the use case cpu-only of the Time Series Benchmark Suite: ten metrics of each of at
// least eight hosts, each 10 s, and the queries with these names (none: all).
func CPUOnly(hosts int, span time.Duration, names ...string) *query.Set {
	s := tsbs("TSBS cpu-only", hosts, span, cpu)
	s.Questions = newAsker(s, hosts).cpuOnly()
	if len(names) > 0 {
		s.Questions = slices.DeleteFunc(s.Questions, func(q query.Question) bool { return !slices.Contains(names, q.Name) })
	}
	return s
}

// tsbs is a use case of TSBS, without queries.
func tsbs(name string, hosts int, span time.Duration, of ...measurement) *query.Set {
	samples := int(span / tsbsInterval)
	return &query.Set{
		Name:  fmt.Sprintf("%s, %s hosts × %s samples", name, table.Count(int64(hosts)), table.Count(int64(samples))),
		Begin: day, Interval: tsbsInterval, Samples: samples, Series: series(hosts, of...), Slice: tsbsSlice, Apart: true,
	}
}

// asker makes queries over a data set with random hosts and times.
type asker struct {
	set   *query.Set
	hosts int
	rng   *rand.Rand
}

func newAsker(set *query.Set, hosts int) *asker {
	return &asker{set, hosts, rand.New(rand.NewPCG(seed, 1<<63))}
}

// some returns a matcher of random hosts.
func (a *asker) some(hosts int) string {
	var names []string
	for _, h := range a.rng.Perm(a.hosts)[:hosts] {
		names = append(names, hostname(h))
	}
	if hosts == 1 {
		return fmt.Sprintf(`hostname='%s'`, names[0])
	}
	return fmt.Sprintf(`hostname=~'%s'`, strings.Join(names, "|"))
}

// during returns a random time of the data that has a length.
func (a *asker) during(length time.Duration) (from, to time.Time) {
	room := max(0, a.set.End().Sub(a.set.Begin)-length)
	from = a.set.Begin.Add(time.Duration(a.rng.Int64N(int64(room/time.Second)+1)) * time.Second)
	return from, from.Add(length)
}

// kind is a kind of range queries, in variants of random times.
func (a *asker) kind(name string, variants int, length, step time.Duration, text func() string) query.Question {
	q := query.Question{Name: name}
	for range variants {
		from, to := a.during(length)
		q.Variants = append(q.Variants, query.Question{Name: name, Text: text(), Start: from, End: to, Step: step})
	}
	return q
}

// cpuOnly returns the queries of TSBS, as it words them for VictoriaMetrics.
func (a *asker) cpuOnly() []query.Question {
	maximum := func(hosts int) func() string {
		return func() string {
			return fmt.Sprintf(`max(max_over_time(cpu_usage_user{%s}[1m])) by (__name__)`, a.some(hosts))
		}
	}
	return []query.Question{
		a.kind("single-groupby-1-1-1", tsbsVariants, time.Hour, time.Minute, maximum(1)),
		a.kind("single-groupby-1-8-1", tsbsVariants, time.Hour, time.Minute, maximum(tsbsFew)),
		a.kind("double-groupby-1", tsbsVariants, 12*time.Hour, time.Hour, func() string { return `avg(avg_over_time(cpu_usage_user{}[1h])) by (__name__, hostname)` }),
	}
}
