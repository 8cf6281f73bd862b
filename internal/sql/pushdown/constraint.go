package pushdown

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grafana/regexp"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/prom/expression"
)

// maxSets is the number of matcher lists of a constraint. Beyond it, a constraint admits more.
const maxSets = 32

// Constraint admits rows of series: those with a time in the range whose series matches all of one
// list of matchers.
type Constraint struct {
	MinT, MaxT int64               // ms, inclusive; MinT > MaxT admits nothing
	Sets       [][]*labels.Matcher // none = every series
}

// All admits everything.
func All() Constraint { return Constraint{MinT: math.MinInt64, MaxT: math.MaxInt64} }

// matching admits the series that match.
func matching(m *labels.Matcher) Constraint {
	c := All()
	c.Sets = [][]*labels.Matcher{{m}}
	return c
}

// And admits what both admit, and maybe more.
func (c Constraint) And(o Constraint) Constraint {
	out := Constraint{MinT: max(c.MinT, o.MinT), MaxT: min(c.MaxT, o.MaxT)}
	switch {
	case len(c.Sets) == 0:
		out.Sets = o.Sets
	case len(o.Sets) == 0 || len(c.Sets)*len(o.Sets) > maxSets:
		out.Sets = c.Sets
	default:
		for _, a := range c.Sets {
			for _, b := range o.Sets {
				out.Sets = append(out.Sets, append(slices.Clone(a), b...))
			}
		}
	}
	return out
}

// Or admits what one of them admits, and maybe more.
func (c Constraint) Or(o Constraint) Constraint {
	switch {
	case c.MinT > c.MaxT:
		return o
	case o.MinT > o.MaxT:
		return c
	}
	out := Constraint{MinT: min(c.MinT, o.MinT), MaxT: max(c.MaxT, o.MaxT)}
	if len(c.Sets) == 0 || len(o.Sets) == 0 || len(c.Sets)+len(o.Sets) > maxSets {
		return out
	}
	out.Sets = append(slices.Clone(c.Sets), o.Sets...)
	return out
}

// Buckets returns, for a constraint of the ends of buckets, that of the samples in them. No sample
// is outside of [least, most] (ms).
func (c Constraint) Buckets(step rollup.Step, least, most int64) Constraint {
	if c.MinT > c.MaxT {
		return c
	}
	c.MinT, c.MaxT = step.BucketOf(max(c.MinT, least))+1, step.BucketOf(min(c.MaxT, most+step.Millis)+1)
	return c
}

// String describes the constraint for explain.
func (c Constraint) String() string {
	var sets []string
	for _, set := range c.Sets {
		var ms []string
		for _, m := range set {
			ms = append(ms, m.String())
		}
		sets = append(sets, "{"+strings.Join(ms, ", ")+"}")
	}
	out := "all series"
	if len(sets) > 0 {
		out = strings.Join(sets, " or ")
	}
	if c.MinT != math.MinInt64 {
		out += " from " + moment(c.MinT)
	}
	if c.MaxT != math.MaxInt64 {
		out += " to " + moment(c.MaxT)
	}
	return out
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// oneOf matches the series whose label has one of some values.
func oneOf(label string, values []string) Constraint {
	if len(values) == 1 {
		return matching(labels.MustNewMatcher(labels.MatchEqual, label, values[0]))
	}
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = regexp.QuoteMeta(v)
	}
	return pattern(label, strings.Join(quoted, "|"))
}

// pattern matches the series whose label matches a regular expression. An invalid one, such as of a
// value that is not UTF-8, admits everything, and so does one that is too large to compile it: the
// parameters of a statement are not limited as expressions are.
func pattern(label, re string) Constraint {
	if (expression.Limits{}).CheckPatterns(re) != nil {
		return All()
	}
	m, err := labels.NewMatcher(labels.MatchRegexp, label, re)
	if err != nil {
		return All()
	}
	return matching(m)
}

// MatchAll returns the sets as readers of series take them: without sets, one list that every
// series matches.
func (c Constraint) MatchAll() [][]*labels.Matcher {
	if len(c.Sets) == 0 {
		return [][]*labels.Matcher{{}}
	}
	return c.Sets
}

var _ fmt.Stringer = Constraint{}
