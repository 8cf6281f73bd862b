// Package views holds the tables of a tenant that SQL statements read: each over the live objects
// of one snapshot, with duplicates resolved by rank and without deleted samples, as PromQL sees
// them.
package views

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/buckets"
	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/sql/pushdown"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Store reads a tenant's objects.
type Store struct {
	Files   *source.Files
	Series  *lookup.Chooser
	Samples *samples.Reader
	Buckets *buckets.Reader
	Metrics *request.Metrics
}

// Read is what a scan reads.
type Read struct {
	Snap       catalog.Snapshot
	Wide       bool                // the snapshot has what the choice among replicas depends on
	MinT, MaxT int64               // ms, inclusive
	Sets       [][]*labels.Matcher // a series matches one of them
	Stored     bool                // each replica is shown
}

// shown returns the sets of a read without the matchers of the replicas' label, which DuckDB applies
// to the series as they are shown.
func (s *Store) shown(ctx context.Context, r Read) [][]*labels.Matcher {
	rule := s.Series.Rule(ctx)
	if !rule.On() {
		return r.Sets
	}
	out := make([][]*labels.Matcher, len(r.Sets))
	for i, set := range r.Sets {
		out[i] = slices.DeleteFunc(slices.Clone(set), func(m *labels.Matcher) bool { return m.Name == rule.Replica })
	}
	return out
}

// resolve matches the series of a scan, which it charges to the statement's budgets; res is nil if
// it reads nothing.
func (s *Store) resolve(from Reader) (ctx context.Context, res *lookup.Resolution, r Read, err error) {
	ctx, r, err = from.Read()
	if err == nil && r.MinT <= r.MaxT {
		var m *lookup.Match
		if r.Stored {
			m, err = s.Series.Tables.Match(ctx, r.Snap, r.MinT, r.MaxT, r.Sets...)
		} else {
			m, err = s.Series.Match(ctx, r.Snap, r.Wide, r.MinT, r.MaxT, s.shown(ctx, r)...)
		}
		if err == nil {
			err = request.Found(ctx, m.Series, lookup.LabelsOf)
		}
		if err == nil {
			res = m.Resolution()
		}
	}
	if err != nil {
		err = from.Fail(err)
	}
	return ctx, res, r, err
}

// Reader returns what the scans of a table read. It is called when a scan begins; the context is
// that of the statement, and Fail records an error of the scan with its type, which DuckDB loses.
// Counts is called with a function that returns, after the scan, how many rows of buckets were
// stored, and how many were computed from samples. Progress is called by tables that are a
// Forecaster, with a function that returns how much of what the scan is to read is done, in a unit of
// its own.
type Reader interface {
	Read() (ctx context.Context, r Read, err error)
	Fail(err error) error
	Counts(rows func() (stored, computed int64))
	Progress(of func() (done, planned int64))
}

// Names of the columns that several tables have.
const (
	metricColumn = "metric"
	labelsColumn = "labels"
	timeColumn   = "ts"
	valueColumn  = "value"
)

// Meaning returns what the columns of the tables of this package hold.
func Meaning(column string) pushdown.Meaning {
	switch column {
	case metricColumn:
		return pushdown.Meaning{Kind: pushdown.Label, Label: model.MetricNameLabel}
	case labelsColumn:
		return pushdown.Meaning{Kind: pushdown.Labels}
	case timeColumn:
		return pushdown.Meaning{Kind: pushdown.Time}
	}
	return pushdown.Meaning{}
}

// putMetric adds the metric name of a series.
func putMetric(t *table.Texts, l labels.Labels) {
	if name := l.Get(model.MetricNameLabel); name != "" {
		t.Add(name)
	} else {
		t.AddNull()
	}
}

// putLabels adds the labels of a series without its metric name.
func putLabels(t *table.Texts, l labels.Labels) {
	if t == nil {
		return
	}
	l.Range(func(x labels.Label) {
		if x.Name != model.MetricNameLabel {
			t.Pair(x.Name, x.Value)
		}
	})
	t.EndMap()
}

// ownRows is the number of rows from which a series shares no chunk with another one. If all rows of
// a chunk have the same labels, DuckDB evaluates conditions on them and groups by them once.
const ownRows = 512

// scan is a pass over the rows of series. It implements table.Scan.
type scan struct {
	from    Reader
	shape   Shape
	threads int
	rows    func() rows // of a cursor
}

func (s *scan) Threads() int         { return s.threads }
func (s *scan) Cursor() table.Cursor { return &cursor{scan: s, rows: s.rows()} }
func (s *scan) Close()               {}

// rows are the rows of a cursor, series by series.
type rows interface {
	// next goes on to the next series that has rows, and returns their number, 0 if there is none.
	next() (labels.Labels, int, error)
	// put writes the rows [from, to) of the series, from row c.Rows on, without their labels.
	put(c *table.Chunk, from, to int)
	Close()
}

// cursor writes the rows of series after series.
type cursor struct {
	rows
	scan   *scan
	lset   labels.Labels // of the current series
	at, of int           // rows of it that are written, and all
}

// Next implements table.Cursor.
func (c *cursor) Next(out *table.Chunk) (err error) {
	for out.Rows < table.ChunkRows {
		if c.at == c.of {
			c.at = 0
			if c.lset, c.of, err = c.next(); err != nil {
				return c.scan.from.Fail(err)
			}
		}
		left := c.of - c.at
		if left == 0 || out.Rows > 0 && max(out.Rows, left) >= ownRows {
			return nil
		}
		n := min(left, table.ChunkRows-out.Rows)
		c.put(out, c.at, c.at+n)
		c.scan.shape.Put(out, c.lset)
		c.scan.shape.Repeat(out, n)
		out.Rows, c.at = out.Rows+n, c.at+n
	}
	return nil
}

// listed is a table whose rows are in memory once it is opened.
type listed struct {
	Reader
	columns []table.Column
	rows    int64 // about
	find    func(context.Context, Read) (*list, error)
}

func (t *listed) Columns() []table.Column { return t.columns }
func (t *listed) Rows() int64             { return t.rows }

// Open implements table.Table.
func (t *listed) Open([]int) (table.Scan, error) {
	ctx, r, err := t.Read()
	var l *list
	if err == nil {
		l, err = t.find(ctx, r)
	}
	if err != nil {
		return nil, t.Fail(err)
	}
	return l, nil
}

// list is a scan over rows in memory. It implements table.Scan and table.Cursor.
type list struct {
	n    int
	next atomic.Int64
	put  func(c *table.Chunk, row int) // writes a row as row c.Rows, which it does not change
}

// none is a scan without rows of a Forecaster.
func none(r Reader) *list {
	r.Progress(func() (done, planned int64) { return 0, 0 })
	return &list{}
}

func (l *list) Threads() int         { return 1 }
func (l *list) Cursor() table.Cursor { return l }
func (l *list) Close()               {}

// Next implements table.Cursor.
func (l *list) Next(c *table.Chunk) error {
	from := int(l.next.Add(table.ChunkRows)) - table.ChunkRows
	for row := from; row < min(from+table.ChunkRows, l.n); row++ {
		l.put(c, row)
		c.Rows++
	}
	return nil
}

// Shown is a table that shows the replicas of a series as one.
type Shown interface {
	// Narrow reports whether its scan needs a snapshot that has what the choice among replicas
	// depends on, and would not get it.
	Narrow() (bool, error)
}

// narrow is Narrow of a table. It decides by the objects' label names, so that a statement knows it
// before it has written rows.
func (s *Store) narrow(from Reader) (bool, error) {
	ctx, r, err := from.Read()
	if err != nil || r.Wide || r.Stored || r.MinT > r.MaxT {
		return false, err
	}
	return s.Series.MayHaveReplicas(ctx, r.Snap, r.MinT, r.MaxT, s.shown(ctx, r)...)
}

// Narrow implements Shown.
func (t *Samples) Narrow() (bool, error) { return t.Store.narrow(t.Reader) }

// Narrow implements Shown.
func (t *Histograms) Narrow() (bool, error) { return t.Store.narrow(t.Reader) }

// Narrow implements Shown.
func (t *Rollup) Narrow() (bool, error) { return t.Store.narrow(t.Reader) }
