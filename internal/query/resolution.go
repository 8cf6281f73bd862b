package query

import (
	"context"
	"slices"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/source"
)

// resolution is what a selector stands for in a time range: the series that match it, and where the objects of a snapshot have
// their samples. It is a plan: no sample has been read.
type resolution struct {
	objs     []source.Object  // by rank, the lowest first
	series   []resolvedSeries // by labels, distinct; those that may have a sample in the range
	idsAgree bool             // in all objects equal ids stand for equal labels, and equal labels for equal ids
	hists    bool             // a series has native histograms in an object that overlaps the range
	starts   bool             // an object has start timestamps
	rows     int64            // float samples in range, about: those of a series are taken to be evenly spaced in an object
	unread   int64            // ms: samples up to here may be missing, of objects that were left out because they end too early

	tables    []*index.Table // by object
	deletions live.Deletions
}

// resolvedSeries is one series of a resolution.
type resolvedSeries struct {
	id     uint64 // as stored; in the first of its objects, if they do not agree
	labels labels.Labels
	tombs  []int    // the tombstones that select it: positions in deletions
	at     []placed // ascending objects
}

// placed says which rows of an object are a series'.
type placed struct {
	object   int   // position in resolution.objs
	row      int64 // in the segment or the series table
	first, n int64 // float samples: rows of the block's sample files, counted over all of them; in a segment first is -1
	hists    int64 // native histograms
}

// resolve finds the series of a snapshot that match and may have samples in [mint, maxt] (ms, inclusive).
func (q *querier) resolve(ctx context.Context, snap catalog.Snapshot, mint, maxt int64, ms []*labels.Matcher) (*resolution, error) {
	m, err := q.stage.match(ctx, snap, mint, maxt, ms)
	if err != nil {
		return nil, err
	}
	return m.resolution(), nil
}

// resolution orders what was found by label sets.
func (m *matched) resolution() *resolution {
	out := &resolution{objs: m.objs, unread: m.unread, tables: m.tables, deletions: m.deletions, series: make([]resolvedSeries, len(m.series))}
	total := 0
	for i, members := range m.members {
		total += len(members)
		o := &m.objs[i]
		out.starts = out.starts || len(members) > 0 && (o.Footer.HasST || o.Footer.Meta != nil && o.Footer.Meta.HasST)
	}
	for i, s := range m.series {
		out.series[i] = resolvedSeries{labels: s.labels, tombs: s.tombs}
	}
	out.idsAgree = m.identify(out.series)
	m.place(out, total)
	slices.SortFunc(out.series, func(a, b resolvedSeries) int { return labels.Compare(a.labels, b.labels) })
	return out
}

// identify gives the series their ids and says whether those of all objects agree.
func (m *matched) identify(series []resolvedSeries) bool {
	agree := true
	seen := make([]bool, len(series))
	owner := make(map[uint64]int32, len(series))
	for i, members := range m.members {
		for _, x := range members {
			id := m.tables[i].ID(int(x.row))
			if seen[x.series] {
				agree = agree && series[x.series].id == id
				continue
			}
			seen[x.series], series[x.series].id = true, id
			if _, taken := owner[id]; taken {
				agree = false
			}
			owner[id] = x.series
		}
	}
	return agree
}

// place says where the series are, of which there are total places.
func (m *matched) place(out *resolution, total int) {
	counts := make([]int, len(m.series))
	for _, members := range m.members {
		for _, x := range members {
			counts[x.series]++
		}
	}
	places := make([]placed, total)
	for i, n := range counts {
		out.series[i].at, places = places[:0:n], places[n:]
	}
	for i, members := range m.members {
		t, inBlock := m.tables[i], m.objs[i].Footer.Meta != nil
		for _, x := range members {
			p := placed{object: i, row: int64(x.row), first: -1}
			first, n := t.Floats(int(x.row))
			if p.n = n; inBlock {
				p.first = first
			}
			_, p.hists = t.Hists(int(x.row))
			out.hists = out.hists || p.hists > 0
			out.rows += m.inRange(t, int(x.row), n)
			s := &out.series[x.series]
			s.at = append(s.at, p)
		}
	}
}

// inRange estimates how many of a row's n samples are in the range.
func (m *matched) inRange(t *index.Table, row int, n int64) int64 {
	from, upto := t.Times(row)
	lo, hi := max(from, m.mint), min(upto, m.maxt)
	if n == 0 || lo <= from && hi >= upto {
		return n
	}
	return 1 + int64(float64(n-1)*float64(hi-lo)/float64(max(1, upto-from)))
}
