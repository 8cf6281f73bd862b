package recent

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/series"
)

// postings are the series of a table by their labels: for each metric and each value of a label
// those that have it.
type postings struct {
	view    *series.View
	n       series.Ref // refs below are there
	metrics values
	names   []values // by ordinal of the name
	byName  map[string]int
	bytes   int64
}

// values are the refs by the ordinal of a value, and these ordinals.
type values struct {
	refs []refs
	ords map[string]int
}

// valueBytes is the memory of a value in postings without its refs, about.
const valueBytes = 24 + 48

// extend adds the series of a later view of the same table.
func (p *postings) extend(v *series.View) {
	p.view = v
	if p.byName == nil {
		p.byName = map[string]int{}
	}
	for n := len(p.names); n < len(v.Names); n++ {
		p.names = append(p.names, values{})
		p.byName[v.Names[n]] = n
	}
	for ; int(p.n) < v.Len(); p.n++ {
		p.add(&p.metrics, v.Metric(p.n), v.Metrics)
		for _, x := range v.Pairs(p.n) {
			p.add(&p.names[x.Name], x.Value, v.Values[x.Name])
		}
	}
}

// add adds the next ref to those of a value.
func (p *postings) add(to *values, ord uint32, texts []string) {
	if to.ords == nil {
		to.ords = map[string]int{}
	}
	for n := len(to.refs); n <= int(ord); n++ {
		to.refs = append(to.refs, nil)
		to.ords[texts[n]] = n
		p.bytes += valueBytes
	}
	const refBytes = 4
	before := cap(to.refs[ord])
	to.refs[ord] = to.refs[ord].add(p.n)
	p.bytes += refBytes * int64(cap(to.refs[ord])-before)
}

// selectScanned is the number of series that are looked at one by one for matchers of which none
// names a value.
const selectScanned = 64 << 10

// matching returns the series from a ref on that match all matchers, ascending. It reports false if it
// would have to look at too many.
func (p *postings) matching(ms []*labels.Matcher, from series.Ref) (out []series.Ref, ok bool) {
	var best refs
	fewest := int(p.n - min(p.n, from))
	named := false
	for _, m := range ms {
		if m.Type != labels.MatchEqual || m.Value == "" {
			continue
		}
		x := p.of(m.Name, m.Value)
		if n := x.count(from, fewest); !named || n < fewest {
			best, fewest, named = x, n, true
		}
	}
	if !named {
		if fewest > selectScanned {
			return nil, false
		}
		if fewest > 0 {
			best = refs{from, throughBit | (p.n - 1)}
		}
	}
	tests := make([]func(series.Ref) bool, len(ms))
	for i, m := range ms {
		tests[i] = p.test(m)
	}
	for first, last := range best.runs(from) {
		for ref := first; ref <= last; ref++ {
			if !slices.ContainsFunc(tests, func(test func(series.Ref) bool) bool { return !test(ref) }) {
				out = append(out, ref)
			}
		}
	}
	return out, true
}

// of returns the series with a value of a label.
func (p *postings) of(name, value string) refs {
	v := &p.metrics
	if name != model.MetricNameLabel {
		i, ok := p.byName[name]
		if !ok {
			return nil
		}
		v = &p.names[i]
	}
	if ord, ok := v.ords[value]; ok {
		return v.refs[ord]
	}
	return nil
}

// test returns a function that reports whether a series matches. It matches each value once.
func (p *postings) test(m *labels.Matcher) func(series.Ref) bool {
	none, known := m.Matches(""), map[uint32]bool{}
	matches := func(ord uint32, texts []string) bool {
		if m.Type == labels.MatchEqual {
			return texts[ord] == m.Value
		}
		is, ok := known[ord]
		if !ok {
			is = m.Matches(texts[ord])
			known[ord] = is
		}
		return is
	}
	if m.Name == model.MetricNameLabel {
		return func(ref series.Ref) bool { return matches(p.view.Metric(ref), p.view.Metrics) }
	}
	name, ok := p.byName[m.Name]
	if !ok {
		return func(series.Ref) bool { return none }
	}
	return func(ref series.Ref) bool {
		for _, x := range p.view.Pairs(ref) {
			if int(x.Name) == name {
				return matches(x.Value, p.view.Values[name])
			}
		}
		return none
	}
}
