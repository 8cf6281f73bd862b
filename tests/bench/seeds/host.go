package seeds

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"
)

// seed makes all runs equal.
const seed = 123

// measurement is one of what the Time Series Benchmark Suite measures of a host, once: each field
// is a series, named by both. Their values and labels have the distributions of TSBS; the random
// numbers are others.
type measurement struct {
	name   string
	tags   func(*rand.Rand) []string // besides the host's: names and values; nil: none
	fields []field
	// joint: the fields show the same walks, so that they get the same random numbers.
	joint bool
}

type field struct {
	name string
	walk walk
}

// cpu has measurements in percent.
var cpu = measurement{name: "cpu", fields: []field{
	{"usage_user", percent}, {"usage_system", percent}, {"usage_idle", percent}, {"usage_nice", percent}, {"usage_iowait", percent},
	{"usage_irq", percent}, {"usage_softirq", percent}, {"usage_steal", percent}, {"usage_guest", percent}, {"usage_guest_nice", percent},
}}

// regions have the letters of their datacenters.
var regions = []struct{ name, datacenters string }{
	{"ap-northeast-1", "ac"}, {"ap-southeast-1", "ab"}, {"ap-southeast-2", "ab"}, {"eu-central-1", "ab"}, {"eu-west-1", "abc"},
	{"sa-east-1", "abc"}, {"us-east-1", "abce"}, {"us-west-1", "ab"}, {"us-west-2", "abc"},
}

// random returns the random numbers of a series of a host's measurement; those of series 0 are for
// labels.
func random(host, measurement, series int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(host)<<16|uint64(measurement)<<8|uint64(series)))
}

func hostname(host int) string { return "host_" + strconv.Itoa(host) }

// hostTags are the labels of a host: names and values.
func hostTags(host int) []string {
	rng := random(host, 0, 0)
	choice := func(values ...string) string { return values[rng.IntN(len(values))] }
	region := regions[rng.IntN(len(regions))]
	return []string{
		"hostname", hostname(host), "region", region.name, "datacenter", region.name + choice(strings.Split(region.datacenters, "")...),
		"rack", strconv.Itoa(rng.IntN(100)), "os", choice("Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"), "arch", choice("x64", "x86"),
		"team", choice("SF", "NYC", "LON", "CHI"), "service", strconv.Itoa(rng.IntN(20)), "service_version", strconv.Itoa(rng.IntN(2)),
		"service_environment", choice("production", "staging", "test"),
	}
}

// series calls add for all series, host by host.
func series(hosts int, of ...measurement) func(add func([]prompb.Label, func() float64)) {
	return func(add func([]prompb.Label, func() float64)) {
		for h := range hosts {
			tags := hostTags(h)
			for m, x := range of {
				all := tags
				if x.tags != nil {
					all = slices.Concat(tags, x.tags(random(h, m+1, 0)))
				}
				for i, f := range x.fields {
					if x.joint {
						i = 0
					}
					add(labels(fmt.Sprintf("%s_%s", x.name, f.name), all), f.walk(random(h, m+1, i+1)))
				}
			}
		}
	}
}

// labels returns the name of a metric and other names and values as labels in order.
func labels(name string, pairs []string) []prompb.Label {
	ls := make([]prompb.Label, 0, 1+len(pairs)/2)
	ls = append(ls, prompb.Label{Name: model.MetricNameLabel, Value: name})
	for p := range slices.Chunk(pairs, 2) {
		ls = append(ls, prompb.Label{Name: p[0], Value: p[1]})
	}
	slices.SortFunc(ls, func(a, b prompb.Label) int { return strings.Compare(a.Name, b.Name) })
	return ls
}
