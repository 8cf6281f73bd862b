package index

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/recent"
)

// Known is Segment for one whose content is in memory: it reads no file. It reports false if each row
// of the segment does not have one float sample and nothing else, as after a scrape.
func (s Some) Known(ctx context.Context, known *recent.Segment) (t *Table, ok bool, err error) {
	base, near := known.Scraped()
	if near == nil || len(known.Rows) > maxRows {
		return nil, false, nil
	}
	l := &knownRows{loader: openLoader(nil, nil, s.Seed), view: known.Labels.View(), all: known.Rows}
	defer l.close()
	l.table.some = []uint32{}
	if found, err := l.find(ctx, s.Sets, s.Most); !found || l.rows == 0 || err != nil {
		if !found {
			return nil, true, err
		}
		return l.table, true, err
	}
	t = l.table
	t.rows, t.rowsKey = l.rows, rowsKey(t.some, s.Seed)
	t.keys = make([]Key, l.rows)
	if err := l.labels(); err != nil {
		return nil, true, err
	}
	t.base, t.floats = base, spans{n: l.rows}
	for _, row := range t.some {
		t.near = append(t.near, near[row])
	}
	return t, true, nil
}

// knownRows makes the table of those rows of a segment in memory that match.
type knownRows struct {
	loader
	view *series.View
	all  []series.Ref // by row
}

// find finds the rows. It reports false if more than most match.
func (l *knownRows) find(ctx context.Context, sets [][]*labels.Matcher, most int) (found bool, err error) {
	var rows []Range
	for _, ms := range sets {
		of := []Range{{0, uint32(len(l.all))}}
		for _, m := range selectiveFirst(ms) {
			if ctx.Err() != nil {
				return false, fmt.Errorf("match values of label %s: %w", m.Name, ctx.Err())
			}
			if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual && len(of) == 1 && of[0].From == 0 {
				of = l.metric(m.Value)
			} else {
				of = Keep(of, l.matching(m))
			}
		}
		rows = Union(rows, of)
	}
	if count(rows) > most {
		return false, nil
	}
	for _, r := range rows {
		for row := r.From; row < r.To; row++ {
			l.table.some = append(l.table.some, row)
		}
	}
	l.rows = len(l.table.some)
	return true, nil
}

// metric returns the rows of a metric: rows are sorted by metric.
func (l *knownRows) metric(name string) []Range {
	at := func(i int) string { return l.view.Metrics[l.view.Metric(l.all[i])] }
	from := sort.Search(len(l.all), func(i int) bool { return at(i) >= name })
	to := from + sort.Search(len(l.all)-from, func(i int) bool { return at(from+i) > name })
	if from == to {
		return nil
	}
	return []Range{{uint32(from), uint32(to)}}
}

// matching returns a function that reports whether a row matches. Each value is matched once.
func (l *knownRows) matching(m *labels.Matcher) func(row int) bool {
	values := l.values(m.Name)
	if m.Type == labels.MatchEqual {
		return func(row int) bool { return values(row) == m.Value }
	}
	known := map[string]bool{}
	return func(row int) bool {
		v := values(row)
		matches, ok := known[v]
		if !ok {
			matches = m.Matches(v)
			known[v] = matches
		}
		return matches
	}
}

// values returns a function that returns the value of a label in a row, "" for none.
func (l *knownRows) values(name string) func(row int) string {
	if name == model.MetricNameLabel {
		return func(row int) string { return l.view.Metrics[l.view.Metric(l.all[row])] }
	}
	o := slices.Index(l.view.Names, name)
	return func(row int) string {
		for _, p := range l.view.Pairs(l.all[row]) {
			if int(p.Name) == o {
				return l.view.Values[o][p.Value]
			}
		}
		return ""
	}
}

// labels adds the columns of the labels of the rows.
func (l *knownRows) labels() error {
	names := []string{model.MetricNameLabel}
	seen := map[uint32]bool{}
	for _, row := range l.table.some {
		for _, p := range l.view.Pairs(l.all[row]) {
			if !seen[p.Name] {
				seen[p.Name] = true
				names = append(names, l.view.Names[p.Name])
			}
		}
	}
	slices.SortFunc(names, strings.Compare)
	b := l.builder
	for _, name := range names {
		b.reset()
		values, positions := l.values(name), map[string]int{}
		for _, row := range l.table.some {
			v := values(int(row))
			at, ok := positions[v]
			if !ok {
				at = len(b.values)
				b.values, positions[v] = append(b.values, v), at
			}
			b.add(at, 1)
		}
		if err := l.finish(name); err != nil {
			return fmt.Errorf("%w: label %s", err, name)
		}
	}
	return nil
}
