package laketest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
)

// RandomRows are series with random gaps over a day that ends at Now: floats of several shapes,
// histograms, and exemplars.
func RandomRows(rng *rand.Rand) []segment.Row {
	end := Now().UnixMilli()
	var rows []segment.Row
	for i := range 40 {
		r := segment.Row{Labels: Metric(fmt.Sprintf("m%d", i%5), "i", fmt.Sprint(i), "job", []string{"a", "b", ""}[i%3], "Odd name", []string{"", "x"}[i%2])}
		r.Labels = labels.NewBuilder(r.Labels).Labels()
		for t := end - 24*60*minute; t <= end; t += 5 * minute {
			if rng.IntN(3) == 0 {
				continue
			}
			switch {
			case i%10 == 9:
				r.Hists = append(r.Hists, segment.Hist{T: t, H: tsdbutil.GenerateTestHistogram(t / minute)})
			default:
				r.Floats = append(r.Floats, segment.Float{T: t, ST: Pick(i%7 == 0, t-minute, 0), V: randomValue(rng, i)})
			}
			if rng.IntN(40) == 0 {
				r.Exemplars = append(r.Exemplars, Exemplar(t, rng.Float64(), fmt.Sprint(rng.IntN(1000))))
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// Pick returns yes if c holds, else no.
func Pick[T any](c bool, yes, no T) T {
	if c {
		return yes
	}
	return no
}

func randomValue(rng *rand.Rand, i int) float64 {
	switch rng.IntN(20) {
	case 0:
		return math.Float64frombits(value.StaleNaN)
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return math.Inf(1)
	}
	if i%2 == 0 {
		return float64(rng.IntN(1000)) / 10
	}
	return math.Float64frombits(rng.Uint64()&^(0x7ff<<52) | 1023<<52)
}

// testDeletions are what DeleteAll deletes: half of them cover whole series.
var testDeletions = []struct {
	matchers   []*labels.Matcher
	mint, maxt int64 // minutes before Now
}{
	{[]*labels.Matcher{Equal("i", "3")}, -24 * 60, 0},
	{[]*labels.Matcher{Equal(model.MetricNameLabel, "m2"), labels.MustNewMatcher(labels.MatchRegexp, "job", "a|")}, -700, -300},
	{[]*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "Odd name", `\bx`)}, -100, -95},
	{[]*labels.Matcher{labels.MustNewMatcher(labels.MatchNotEqual, "i", "1")}, -400, -390},
	{[]*labels.Matcher{Equal("i", "19")}, -24 * 60, 0},
}

// DeleteAll deletes parts of RandomRows from what the default tenant has. Without does the same to
// rows.
func DeleteAll(l *Lake) {
	now := Now().UnixMilli()
	for _, d := range testDeletions {
		l.Delete(tenant.Default, d.matchers, now+d.mint*minute, now+d.maxt*minute)
	}
}

// Without is the naive answer to testDeletions.
func Without(rows []segment.Row) []segment.Row {
	now := Now().UnixMilli()
	var out []segment.Row
	for _, r := range rows {
		gone := func(t int64) bool {
			return slices.ContainsFunc(testDeletions, func(d struct {
				matchers   []*labels.Matcher
				mint, maxt int64
			}) bool {
				return t >= now+d.mint*minute && t <= now+d.maxt*minute &&
					!slices.ContainsFunc(d.matchers, func(m *labels.Matcher) bool { return !m.Matches(r.Labels.Get(m.Name)) })
			})
		}
		kept := segment.Row{Labels: r.Labels}
		kept.Floats = slices.DeleteFunc(slices.Clone(r.Floats), func(f segment.Float) bool { return gone(f.T) })
		kept.Hists = slices.DeleteFunc(slices.Clone(r.Hists), func(h segment.Hist) bool { return gone(h.T) })
		kept.Exemplars = slices.DeleteFunc(slices.Clone(r.Exemplars), func(e exemplar.Exemplar) bool { return gone(e.Ts) })
		if len(kept.Floats)+len(kept.Hists) > 0 {
			out = append(out, kept)
		}
	}
	return out
}

// Metric returns the labels of a series: a metric, and pairs of names and values.
func Metric(name string, pairs ...string) labels.Labels {
	return labels.FromStrings(append([]string{model.MetricNameLabel, name}, pairs...)...)
}

// Equal returns a matcher for one value of a label.
func Equal(name, value string) *labels.Matcher {
	return labels.MustNewMatcher(labels.MatchEqual, name, value)
}

// Exemplar returns an exemplar at a time (ms) with the label trace_id.
func Exemplar(ts int64, v float64, trace string) exemplar.Exemplar {
	return exemplar.Exemplar{Ts: ts, HasTs: true, Value: v, Labels: labels.FromStrings("trace_id", trace)}
}

// Joined returns one row for each series.
func Joined(rows []segment.Row) (out []segment.Row) {
	at := map[string]int{}
	for _, r := range rows {
		text := r.Labels.String()
		i, ok := at[text]
		if !ok {
			at[text] = len(out)
			out = append(out, segment.Row{Labels: r.Labels, Floats: append([]segment.Float(nil), r.Floats...), Hists: r.Hists})
			continue
		}
		for _, f := range r.Floats {
			k := len(out[i].Floats)
			for k > 0 && out[i].Floats[k-1].T >= f.T {
				k--
			}
			if k < len(out[i].Floats) && out[i].Floats[k].T == f.T {
				out[i].Floats[k] = f
				continue
			}
			out[i].Floats = append(out[i].Floats[:k], append([]segment.Float{f}, out[i].Floats[k:]...)...)
		}
		out[i].Hists = append(out[i].Hists, r.Hists...)
	}
	return out
}

// In milliseconds.
const (
	minute = 60_000
	hour   = 60 * minute
)
