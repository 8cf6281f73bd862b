package index

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
)

// Select returns the rows whose series match all matchers, as ascending ranges that do not touch. A
// regular expression can take milliseconds for each value, so Select returns ctx's error once ctx
// ends.
func (t *Table) Select(ctx context.Context, ms []*labels.Matcher) ([]Range, error) {
	if t.Rows() == 0 {
		return nil, nil
	}
	var room [maxTests]test
	tests, narrow := room[:0], false
	for _, m := range ms {
		c := t.column(m.Name)
		if c == nil {
			if !m.Matches("") {
				return nil, nil
			}
			continue
		}
		set, err := c.dict.matching(ctx, m)
		if err != nil {
			return nil, err
		}
		switch n := set.count(); n {
		case 0:
			return nil, nil
		case c.dict.len():
		default:
			x := test{column: c, set: set}
			narrow = x.locate() || narrow
			tests = append(tests, x)
		}
	}
	// Selective matchers run first, and columns with a code per run before those with a code per
	// row. Beside adjacent rows, such as those of a metric, others are not worth a count.
	for i := range tests {
		switch x := &tests[i]; {
		case x.rows.To > 0:
		case narrow && x.column.ends != nil:
			x.cost = t.Rows()
		default:
			x.cost = x.column.cost(x.set)
		}
	}
	slices.SortStableFunc(tests, func(a, b test) int { return a.cost - b.cost })
	r := ranges.Get().(*[2][]Range)
	defer ranges.Put(r)
	out, spare := append(r[0][:0], Range{0, uint32(t.Rows())}), r[1]
	for i := range tests {
		next := tests[i].filter(spare[:0], out)
		out, spare = next, out
		if len(out) == 0 {
			break
		}
	}
	if r[0], r[1] = out, spare; len(out) == 0 {
		return nil, nil
	}
	return slices.Clone(out), nil
}

// maxTests is how many matchers need no memory of their own.
const maxTests = 8

// ranges keeps memory for the rows between two filters of Select.
var ranges = sync.Pool{New: func() any { return new([2][]Range) }}

// Values returns the distinct values of a label in rows, sorted and without "".
func (t *Table) Values(name string, rows []Range) []string {
	c := t.column(name)
	if c == nil || len(rows) == 0 {
		return nil
	}
	seen := make([]bool, c.dict.len())
	run := 0
	for _, r := range rows {
		if c.ends == nil {
			for row := r.From; row < r.To; row++ {
				seen[c.codes.at(int(row))] = true
			}
			continue
		}
		for row := r.From; row < r.To; row = c.ends[run] {
			seen[c.code(row, &run)] = true
		}
	}
	var out []string
	for code, ok := range seen {
		if v := c.dict.value(code); ok && v != "" {
			out = append(out, strings.Clone(v))
		}
	}
	return out
}

// Used returns the names of the labels that at least one of the rows has, sorted.
func (t *Table) Used(rows []Range) (out []string) {
	for i := range t.columns {
		if t.columns[i].used(rows) {
			out = append(out, t.names[i])
		}
	}
	return out
}

// used reports whether at least one of the rows has a value.
func (c *column) used(rows []Range) bool {
	if len(rows) > 0 && c.dict.value(0) != "" {
		return true
	}
	run := 0
	for _, r := range rows {
		for row := r.From; row < r.To; row++ {
			if c.code(row, &run) != 0 {
				return true
			}
			if c.ends != nil {
				row = c.ends[run] - 1
			}
		}
	}
	return false
}

// test is a matcher on a column of which only some values match.
type test struct {
	column *column
	set    codeSet
	cost   int
	rows   Range // all rows that match, if the column is ascending and the set has one code
}

// locate sets the rows of a test and its cost, if the rows are adjacent in an ascending column, and
// reports whether they are.
func (x *test) locate() bool {
	c := x.column
	code, ok := x.set.single()
	if !ok || !c.ascending {
		return false
	}
	to, from := c.ends[code], uint32(0)
	if code > 0 {
		from = c.ends[code-1]
	}
	x.cost, x.rows = int(to-from), Range{from, to}
	return true
}

// filter appends to dst the rows of src that match.
func (x *test) filter(dst, src []Range) []Range {
	if x.rows.To == 0 {
		return x.column.filter(dst, src, x.set)
	}
	for _, r := range src {
		if from, to := max(r.From, x.rows.From), min(r.To, x.rows.To); from < to {
			dst = append(dst, Range{from, to})
		}
	}
	return dst
}

// codeSet is a set of codes: [from, upto) without those that skip marks (nil: none). If not is set,
// it is the complement.
type codeSet struct {
	from, upto int
	all        int    // number of codes in the dictionary
	skip       []bool // by code - from
	skipped    int
	not        bool
}

func (s *codeSet) has(code uint32) bool {
	i := int(code) - s.from
	in := i >= 0 && i < s.upto-s.from && (s.skip == nil || !s.skip[i])
	return in != s.not
}

func (s *codeSet) count() int {
	n := s.upto - s.from - s.skipped
	if s.not {
		return s.all - n
	}
	return n
}

// single returns the only code of the set; false if the set is not known to have exactly one.
func (s *codeSet) single() (uint32, bool) {
	return uint32(s.from), !s.not && s.upto-s.from == 1 && s.skipped == 0
}

// matching returns the codes of the values that m matches. It returns ctx's error once ctx ends.
func (d *dict) matching(ctx context.Context, m *labels.Matcher) (codeSet, error) {
	negative := m.Type == labels.MatchNotEqual || m.Type == labels.MatchNotRegexp
	set := codeSet{all: d.len(), not: negative}
	if m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual {
		set.pick(d, m.Value)
		return set, ctx.Err()
	}
	if vals := m.SetMatches(); len(vals) > 0 {
		set.pick(d, vals...)
		return set, ctx.Err()
	}
	set.upto = d.len()
	if p := m.Prefix(); p != "" {
		set.from, _ = d.search(p)
		set.upto = set.from + sort.Search(d.len()-set.from, func(i int) bool { return !strings.HasPrefix(d.value(set.from+i), p) })
	}
	set.skip = make([]bool, set.upto-set.from)
	for i := range set.skip {
		if i%valuesAtOnce == 0 && ctx.Err() != nil {
			return set, fmt.Errorf("match values of label %s: %w", m.Name, ctx.Err())
		}
		if m.Matches(d.value(set.from+i)) == negative { // the pattern of m does not match
			set.skip[i] = true
			set.skipped++
		}
	}
	return set, nil
}

// valuesAtOnce is the number of values that are matched between two checks of the context.
const valuesAtOnce = 64

// pick sets the range of s to the codes of some values.
func (s *codeSet) pick(d *dict, vals ...string) {
	if len(vals) == 1 {
		if code, ok := d.search(vals[0]); ok {
			s.from, s.upto = code, code+1
		}
		return
	}
	var found []int
	for _, v := range vals {
		if code, ok := d.search(v); ok {
			found = append(found, code)
		}
	}
	if len(found) == 0 {
		return
	}
	slices.Sort(found)
	found = slices.Compact(found)
	s.from, s.upto = found[0], found[len(found)-1]+1
	if len(found) == s.upto-s.from {
		return
	}
	s.skip, s.skipped = make([]bool, s.upto-s.from), s.upto-s.from-len(found)
	for i := range s.skip {
		s.skip[i] = true
	}
	for _, code := range found {
		s.skip[code-s.from] = false
	}
}

// cost orders tests. For a column with a code per run it is the number of rows that match; for
// other columns it is higher than any such number.
func (c *column) cost(set codeSet) int {
	if c.ends == nil {
		const dense = 1 << 40
		return dense + set.count()*(dense/c.dict.len())
	}
	n, from := 0, uint32(0)
	for i, end := range c.ends {
		if set.has(c.codes.at(i)) {
			n += int(end - from)
		}
		from = end
	}
	return n
}

// filter appends to dst the rows of src whose codes are in a set.
func (c *column) filter(dst, src []Range, set codeSet) []Range {
	if code, ok := set.single(); ok {
		return c.filterOne(dst, src, code)
	}
	switch {
	case c.ends != nil:
		run := 0
		for _, r := range src {
			run += sort.Search(len(c.ends)-run, func(i int) bool { return c.ends[run+i] > r.From })
			for from := r.From; from < r.To; run++ {
				to := min(r.To, c.ends[run])
				if set.has(c.codes.at(run)) {
					dst = join(dst, from, to)
				}
				if from = to; c.ends[run] > to {
					break
				}
			}
		}
		return dst
	case c.codes.b1 != nil:
		return filterCodes(dst, src, c.codes.b1, set)
	case c.codes.b2 != nil:
		return filterCodes(dst, src, c.codes.b2, set)
	}
	return filterCodes(dst, src, c.codes.b4, set)
}

// filterOne is filter for one code.
func (c *column) filterOne(dst, src []Range, code uint32) []Range {
	for _, r := range src {
		from, upto := int(r.From), int(r.To)
		if c.ends != nil { // runs in place of rows
			from = sort.Search(len(c.ends), func(i int) bool { return c.ends[i] > r.From })
			upto = from + sort.Search(len(c.ends)-from, func(i int) bool { return c.ends[from+i] >= r.To }) + 1
		}
		for ; from < upto; from++ {
			i := c.codes.index(from, upto, code)
			if i < 0 {
				break
			}
			switch from += i; {
			case c.ends == nil:
				dst = join(dst, uint32(from), uint32(from)+1)
			case from == 0:
				dst = join(dst, r.From, min(r.To, c.ends[0]))
			default:
				dst = join(dst, max(r.From, c.ends[from-1]), min(r.To, c.ends[from]))
			}
		}
	}
	return dst
}

func filterCodes[T uint8 | uint16 | uint32](dst, src []Range, codes []T, set codeSet) []Range {
	table := make([]bool, set.all)
	for code := range table {
		table[code] = set.has(uint32(code))
	}
	for _, r := range src {
		for i, v := range codes[r.From:r.To] {
			if table[v] {
				dst = join(dst, r.From+uint32(i), r.From+uint32(i)+1)
			}
		}
	}
	return dst
}
