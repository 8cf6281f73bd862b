package seeds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"

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

// each returns the text of a query for one metric of cpu or, because functions of PromQL drop the
// name of a metric, the union of the texts for several ones, with the name of the field as a label.
func each(fields []field, text func(metric string) string) string {
	if len(fields) == 1 {
		return text("cpu_" + fields[0].name)
	}
	var union []string
	for _, f := range fields {
		union = append(union, fmt.Sprintf(`label_replace(%s, 'field', '%s', '', '')`, text("cpu_"+f.name), f.name))
	}
	return strings.Join(union, " or ")
}

// cpuOnly returns the queries of TSBS. Those of one metric are as it words them for
// VictoriaMetrics.
func (a *asker) cpuOnly() (all []query.Question) {
	maximum := func(name string, fields, hosts int, length, step time.Duration) {
		all = append(all, a.kind(name, tsbsVariants, length, step, func() string {
			some := a.some(hosts)
			return each(cpu.fields[:fields], func(metric string) string {
				return fmt.Sprintf(`max(max_over_time(%s{%s}[%s])) by (__name__)`, metric, some, model.Duration(step))
			})
		}))
	}
	mean := func(name string, fields int) {
		all = append(all, a.kind(name, tsbsVariants, 12*time.Hour, time.Hour, func() string {
			return each(cpu.fields[:fields], func(metric string) string {
				return fmt.Sprintf(`avg(avg_over_time(%s{}[1h])) by (__name__, hostname)`, metric)
			})
		}))
	}
	// all readings of a host at the times when the first one is above 90
	high := func(name string, variants int, matcher func() string) {
		all = append(all, a.kind(name, variants, 12*time.Hour, tsbsInterval, func() string {
			return fmt.Sprintf(`{__name__=~'cpu_usage_.*', %[1]s} and on (hostname) cpu_usage_user{%[1]s} > 90`, matcher())
		}))
	}
	for _, kind := range []struct{ fields, hosts, hours int }{{1, 1, 1}, {1, 1, 12}, {1, tsbsFew, 1}, {5, 1, 1}, {5, 1, 12}, {5, tsbsFew, 1}} {
		maximum(fmt.Sprintf("single-groupby-%d-%d-%d", kind.fields, kind.hosts, kind.hours), kind.fields, kind.hosts, time.Duration(kind.hours)*time.Hour, time.Minute)
	}
	mean("double-groupby-1", 1)
	mean("double-groupby-5", 5)
	mean("double-groupby-all", len(cpu.fields))
	maximum("cpu-max-all-1", len(cpu.fields), 1, 8*time.Hour, time.Hour)
	maximum("cpu-max-all-8", len(cpu.fields), tsbsFew, 8*time.Hour, time.Hour)
	high("high-cpu-1", tsbsVariants, func() string { return a.some(1) })
	high("high-cpu-all", tsbsVariants, func() string { return `hostname!=''` })
	last := fmt.Sprintf(`last_over_time({__name__=~'cpu_usage_.*'}[%s])`, model.Duration(a.set.End().Sub(a.set.Begin)))
	all = append(all, query.Question{Name: "lastpoint", Text: last, Start: a.set.End(), End: a.set.End()})
	// the maxima of the five minutes before a random time
	return append(all, a.kind("groupby-orderby-limit", tsbsVariants, 4*time.Minute, time.Minute, func() string { return `max(max_over_time(cpu_usage_user{}[1m]))` }))
}
