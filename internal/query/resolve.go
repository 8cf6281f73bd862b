package query

import (
	"context"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/duck"
)

// predicate translates matchers into SQL. Those that SQL cannot evaluate exactly are evaluated here, on the distinct values
// that their label has among the series that the others leave, and become a list of values.
func (s *Stage) predicate(ctx context.Context, src *source, ms []*labels.Matcher) (predicate, error) {
	p := src.where(ms)
	rest := p.rest
	p.rest = nil
	for _, m := range rest {
		if p.never {
			break
		}
		values, err := s.matching(ctx, src, p, m)
		if err != nil {
			return p, err
		}
		if len(values) == 0 {
			p.never = true
			break
		}
		p.conds = append(p.conds, src.value(m.Name)+" IN ("+duck.Literals(values)+")")
	}
	return p, nil
}

// matching returns the values of m's label that m matches, of the series that p leaves. "" stands for series without the label.
func (s *Stage) matching(ctx context.Context, src *source, p predicate, m *labels.Matcher) ([]string, error) {
	var out []string
	sql := "SELECT DISTINCT " + src.value(m.Name) + " FROM " + src.from() + p.sql()
	err := s.db.Each(ctx, sql, []string{duck.Varchar}, func(_ int, cols []duck.Vector) error {
		vals := cols[0].Strings()
		for i := range vals {
			if v := vals[i].String(); m.Matches(v) {
				if len(out) == s.settings.MaxMatcherValues {
					return s.settings.tooManyMatcherValues()
				}
				out = append(out, v)
			}
		}
		return nil
	})
	return out, err
}

// mayMatch says that an object can hold a series that matches one of sets; no sets match everything.
func (f *footer) mayMatch(sets [][]*labels.Matcher) bool {
	for _, ms := range sets {
		if !f.refuses(ms) {
			return true
		}
	}
	return len(sets) == 0
}
