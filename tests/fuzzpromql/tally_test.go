package fuzzpromql

import (
	"slices"
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
	estimates                                 []estimated
}

// bounds returns the shares of the queries whose estimates bound the samples that upstream has
// read, and the series and samples that Promlake has read, and the median of how many times as many
// samples were estimated as upstream has read.
func (s *tally) bounds() (upstream, series, samples, median float64) {
	var ratios []float64
	for _, e := range s.estimates {
		if e.upstream <= e.SamplesRead {
			upstream++
		}
		if e.own.SeriesTouched <= e.SeriesTouched {
			series++
		}
		if e.own.SamplesRead <= e.SamplesRead {
			samples++
		}
		if e.upstream > 0 {
			ratios = append(ratios, float64(e.SamplesRead)/float64(e.upstream))
		}
	}
	slices.Sort(ratios)
	n := float64(len(s.estimates))
	return upstream / n, series / n, samples / n, ratios[len(ratios)/2]
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

func (s *tally) estimate(e estimated) {
	s.Lock()
	defer s.Unlock()
	s.estimates = append(s.estimates, e)
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
