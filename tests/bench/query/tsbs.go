package query

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// The data set tsbs follows the documentation of the Time Series Benchmark Suite: its use case
// cpu-only, and its queries as they are worded for VictoriaMetrics.
const (
	tsbsInterval = 10 * time.Second
	tsbsSlice    = 100 * time.Second // of the samples in a request: 10 of each of 1,000 series
	tsbsFew      = 8                 // hosts of a query of several
	tsbsVariants = 20                // of a query, each of other hosts and another time
	tsbsSeed     = 123
)

// tsbsFields are the measurements of a host, each in percent.
var tsbsFields = []string{
	"usage_user", "usage_system", "usage_idle", "usage_nice", "usage_iowait", "usage_irq", "usage_softirq", "usage_steal", "usage_guest", "usage_guest_nice",
}

// tsbsTags are the labels of a host, and the values that they have.
var tsbsTags = []struct {
	name   string
	values []string
}{
	{"region", []string{"ap-northeast-1", "ap-southeast-1", "eu-central-1", "eu-west-1", "sa-east-1", "us-east-1", "us-west-1", "us-west-2"}},
	{"rack", numbers(100)},
	{"os", []string{"Ubuntu15.10", "Ubuntu16.04LTS", "Ubuntu16.10"}},
	{"arch", []string{"x64", "x86"}},
	{"team", []string{"CHI", "LON", "NYC", "SF"}},
	{"service", numbers(20)},
	{"service_version", numbers(2)},
	{"service_environment", []string{"production", "staging", "test"}},
}

func numbers(n int) (out []string) {
	for i := range n {
		out = append(out, strconv.Itoa(i))
	}
	return out
}

// tsbsSeries returns the generators of the data, host by host. The samples are a millisecond after
// the steps of the queries, see hostsShift.
func (s scale) tsbsSeries() (all []*generator) {
	for h := range s.Hosts {
		rng := rand.New(rand.NewPCG(tsbsSeed, uint64(h)))
		tags := []string{"hostname", label("host_", h)}
		for _, t := range tsbsTags {
			value := t.values[rng.IntN(len(t.values))]
			if tags = append(tags, t.name, value); t.name == "region" {
				tags = append(tags, "datacenter", value+string(rune('a'+rng.IntN(3))))
			}
		}
		for i, field := range tsbsFields {
			all = append(all, &generator{
				labels: sorted(append([]string{model.MetricNameLabel, "cpu_" + field}, tags...)),
				first:  s.begin().UnixMilli() + 1, interval: tsbsInterval.Milliseconds(), next: percent(rand.New(rand.NewPCG(tsbsSeed, uint64(h+1)<<8|uint64(i)))),
			})
		}
	}
	return all
}

// percent is a random walk from 0 to 100 in normally distributed steps, of which only the whole
// numbers are measured.
func percent(rng *rand.Rand) func() float64 {
	v := rng.Float64() * 100
	return func() float64 {
		v = min(max(v+rng.NormFloat64(), 0), 100)
		return float64(int(v))
	}
}

// tsbsQuestions returns three kinds of queries: the maximum of a metric of one host and of eight
// hosts for each minute of an hour, and its average for each host and hour of half a day.
func (s scale) tsbsQuestions() []question {
	rng := rand.New(rand.NewPCG(tsbsSeed, 1<<32))
	kind := func(name string, window, step time.Duration, text func() string) question {
		q := question{Name: name}
		for range tsbsVariants {
			room := max(0, s.end().Sub(s.begin())-window)
			from := s.begin().Add(time.Duration(rng.Int64N(int64(room/time.Second)+1)) * time.Second)
			q.Variants = append(q.Variants, question{Name: name, Text: text(), Start: from, End: from.Add(window), Step: step})
		}
		return q
	}
	maximum := func(hosts int) func() string {
		return func() string {
			matcher := "hostname="
			if hosts > 1 {
				matcher = "hostname=~"
			}
			var names []string
			for _, h := range rng.Perm(s.Hosts)[:hosts] {
				names = append(names, label("host_", h))
			}
			return fmt.Sprintf(`max(max_over_time(cpu_usage_user{%s'%s'}[1m])) by (__name__)`, matcher, strings.Join(names, "|"))
		}
	}
	return []question{
		kind("single-groupby-1-1-1", time.Hour, time.Minute, maximum(1)),
		kind("single-groupby-1-8-1", time.Hour, time.Minute, maximum(tsbsFew)),
		kind("double-groupby-1", 12*time.Hour, time.Hour, func() string { return `avg(avg_over_time(cpu_usage_user{}[1h])) by (__name__, hostname)` }),
	}
}
