package fuzzpromql

import (
	"strings"
	"sync"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query"
)

// tally counts the results of queries.
type tally struct {
	sync.Mutex
	queries, failed, empty, errors, undecided, limited int
	// subtrees; those that were computed directly; statements; queries of which nothing was pushed;
	// queries of the head
	pushed, computed, statements, kept, heads float64
	alike                                     map[string]int
	reports                                   []string
}

func (s *tally) add(v verdict, want outcome) {
	s.Lock()
	defer s.Unlock()
	s.queries++
	switch {
	case v.difference != "":
		s.failed++
	case v.undecided:
		s.undecided++
	case v.limited:
		s.limited++
	case want.err != "":
		s.errors++
	case len(want.series) == 0:
		s.empty++
	}
}

func (s *tally) report(kind, text string) {
	s.Lock()
	defer s.Unlock()
	if s.alike[kind]++; s.alike[kind] <= maxAlike && len(s.reports) < maxReports {
		s.reports = append(s.reports, text)
	}
}

// kind groups differences that probably have the same cause, by the error, the notes, or the
// outermost operator of the smallest part.
func kind(smallest, difference string) string {
	if strings.HasPrefix(difference, "error") || strings.HasPrefix(difference, "notes") {
		return difference
	}
	what := difference[:strings.IndexByte(difference, ' ')]
	e, err := parser.NewParser(query.ParserOptions()).ParseExpr(smallest)
	if err != nil {
		return what
	}
	features(e, func(f string) { what += " " + f })
	return what
}
