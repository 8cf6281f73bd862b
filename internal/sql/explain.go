package sql

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/sql/views"
)

// explanation is what follows DuckDB's plan: a text for each scan, and the cost of all.
type explanation struct {
	scans []string // by scan
	calls []string // of promql
	cost  source.Cost
}

// forecast describes what the statement will read, as things are cached now.
func (x *execution) forecast() (e *explanation, err error) {
	e = &explanation{}
	if x.Remote && x.mint <= x.maxt {
		e.cost.Add(source.Snapshot())
	}
	usage := &source.Usage{}
	for _, s := range x.scans {
		text, err := x.describe(s, usage)
		if err != nil {
			return nil, err
		}
		e.scans = append(e.scans, text)
	}
	e.cost.Add(usage.Cost())
	for _, p := range x.calls {
		r := request.From(x.ctx)
		r.Snapshot = &request.Snapshot{Snapshot: x.snap, Wide: x.wide}
		c, err := x.Price(request.With(x.ctx, r), p.text, p.start, p.end, p.step)
		if err != nil {
			return nil, x.fail(err)
		}
		if x.Remote {
			c.Lists, c.Gets = c.Lists-source.Snapshot().Lists, c.Gets-source.Snapshot().Gets // it shares the snapshot
		}
		e.calls = append(e.calls, fmt.Sprintf("promql %s from %s to %s every %s", p.text, p.start.UTC().Format(timeLayout), p.end.UTC().Format(timeLayout), p.step))
		e.cost.Add(c)
	}
	return e, nil
}

const timeLayout = "2006-01-02T15:04:05.000Z"

// describe describes what a scan reads of the live objects of its times.
func (x *execution) describe(s scan, usage *source.Usage) (string, error) {
	c := s.constraint
	snap := x.snap.Narrow(max(c.MinT, x.mint), min(c.MaxT, x.maxt))
	var bytes int64
	for _, o := range snap.Segments {
		bytes += o.Size
	}
	for _, o := range snap.Blocks {
		bytes += o.Bytes
	}
	text := fmt.Sprintf("%s; of %d segments and %d blocks, %d bytes", s, len(snap.Segments), len(snap.Blocks), bytes)
	t, ok := s.table.(views.Forecaster)
	if !ok {
		return text, nil
	}
	f, err := t.Forecast(s.reads, usage)
	if err != nil {
		return "", err
	}
	text += fmt.Sprintf("; reads %d series of %d segments and %d blocks, %d of %d row groups, %d bytes",
		f.Series, f.Segments, f.Blocks, f.RowGroups.Read, f.RowGroups.Considered, f.Bytes.Read)
	if f.Stored+f.Computed > 0 && !x.stmt.Analyze {
		text += fmt.Sprintf("; about %d rows of rollups, %d computed from samples", f.Stored, f.Computed)
	}
	return text, nil
}

// explained writes the explanation after DuckDB's, whose columns are texts. If the statement ran,
// the numbers of rows of buckets are exact.
func (x *execution) explained(e *explanation, schema *arrow.Schema) error {
	if len(schema.Fields()) != 2 {
		return nil
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	var failed error
	put := func(kind, text string) {
		for i, s := range []string{kind, text} {
			f, ok := b.Field(i).(*array.StringBuilder)
			if !ok {
				failed = fmt.Errorf("explain a statement: column %d of DuckDB's answer is not text", i)
				return
			}
			f.Append(s)
		}
	}
	for i, s := range x.scans {
		text := e.scans[i]
		if rows := x.counts[s.key]; len(rows) > 0 {
			var stored, computed int64
			for _, n := range rows {
				a, b := n()
				stored, computed = stored+a, computed+b
			}
			text += fmt.Sprintf("; %d rows of rollups, %d computed from samples", stored, computed)
		}
		put("scan", text)
	}
	for _, text := range e.calls {
		put("scan", text)
	}
	put("cost", e.cost.String())
	if failed != nil {
		return failed
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	return x.enc.Write(batch)
}
