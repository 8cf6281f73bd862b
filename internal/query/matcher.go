package query

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/duck"
)

// predicate is a conjunction of matchers over a source, as SQL.
type predicate struct {
	conds []string          // SQL conditions, all of which must hold
	rest  []*labels.Matcher // regular expressions that SQL cannot evaluate exactly; see Stage.resolve
	never bool              // no series can match
}

// where translates matchers. A label that no object has is empty everywhere and is decided here.
func (s *source) where(ms []*labels.Matcher) predicate {
	var p predicate
	for _, m := range ms {
		if !s.has(m.Name) {
			p.never = p.never || !m.Matches("")
			continue
		}
		cond, ok := s.condition(m)
		switch {
		case !ok:
			p.rest = append(p.rest, m)
		case cond != "":
			p.conds = append(p.conds, cond)
		}
	}
	return p
}

// and adds conditions; "" is none.
func (p *predicate) and(conds ...string) {
	p.conds = slices.Clip(p.conds)
	for _, c := range conds {
		if c != "" {
			p.conds = append(p.conds, c)
		}
	}
}

// sql renders the conditions as a WHERE clause, or nothing.
func (p *predicate) sql(extra ...string) string {
	conds := append(slices.Clip(p.conds), extra...)
	if len(conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conds, " AND ")
}

// condition translates one matcher; "" is always true. ok is false if SQL cannot evaluate it exactly.
//
// A matcher that refuses the empty string is tried on each place where the label may be, so that DuckDB can prune by a plain
// column: there, NULL and ” fail alike. Any other matcher needs the value itself.
func (s *source) condition(m *labels.Matcher) (cond string, ok bool) {
	if m.Matches("") {
		return compare(s.value(m.Name), m)
	}
	var alts []string
	for _, term := range s.terms(m.Name) {
		cond, ok := compare(term, m)
		if !ok || cond == "" {
			return cond, ok
		}
		alts = append(alts, cond)
	}
	if len(alts) == 1 {
		return alts[0], true
	}
	return "(" + strings.Join(alts, " OR ") + ")", true
}

// compare renders m applied to a SQL expression; "" is always true.
func compare(expr string, m *labels.Matcher) (cond string, ok bool) {
	switch m.Type {
	case labels.MatchEqual:
		return expr + " = " + duck.Literal(m.Value), true
	case labels.MatchNotEqual:
		return expr + " <> " + duck.Literal(m.Value), true
	}
	negate := m.Type == labels.MatchNotRegexp
	switch {
	case m.Value == ".*" && !negate:
		return "", true
	case m.Value == ".+":
		return expr + pick(negate, " = ", " <> ") + "''", true
	}
	if set := m.SetMatches(); len(set) > 0 {
		slices.Sort(set)
		return expr + pick(negate, " NOT IN (", " IN (") + duck.Literals(slices.Compact(set)) + ")", true
	}
	re, ok := portable(m.Value)
	if !ok {
		return "", false
	}
	cond = "regexp_full_match(" + expr + ", " + duck.Literal(re) + ")"
	if negate {
		return "NOT " + cond, true
	}
	if p := m.Prefix(); p != "" { // lets DuckDB prune row groups by their minimum and maximum
		cond = "(starts_with(" + expr + ", " + duck.Literal(p) + ") AND " + cond + ")"
	}
	return cond, true
}

func pick(c bool, yes, no string) string {
	if c {
		return yes
	}
	return no
}

// refuses says that an object cannot hold a matching series, by its label names alone.
func (f *footer) refuses(ms []*labels.Matcher) bool {
	for _, m := range ms {
		if m.Name == model.MetricNameLabel || m.Matches("") {
			continue
		}
		if !contains(f.LabelColumns, m.Name) && !contains(f.MapNames, m.Name) {
			return true
		}
	}
	return false
}

// contains searches a sorted slice.
func contains(sorted []string, s string) bool {
	_, ok := slices.BinarySearch(sorted, s)
	return ok
}
