package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/stats"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/divide"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/replica"
)

// division is how a query is divided over workers.
type division struct {
	workers []string // their addresses
	slices  []divide.Slice
	why     string // the query is not divided; "" if it is
}

// String describes the division for explain.
func (d *division) String() string {
	if d.why != "" {
		return "not divided: " + d.why
	}
	return fmt.Sprintf("%d slices of its steps, for %d workers", len(d.slices), len(d.workers))
}

// division decides whether a planned query whose estimate is e is divided.
func (q *Query) division(ctx context.Context, p *exec.Attempt, planned *plan.Query, e request.Estimate) *division {
	s := &q.engine.settings
	grid := plan.Grid{Start: timestamp.FromTime(q.asked.Start), Step: q.asked.Interval.Milliseconds(), N: planned.Steps()}
	switch {
	case q.asked.Interval <= 0:
		return &division{why: "it has one time"}
	case e.Bytes <= s.DivideBytes:
		return &division{why: fmt.Sprintf("it reads about %d bytes, at most the %d of --query.divide-bytes", e.Bytes, s.DivideBytes)}
	}
	if why := q.undividable(p); why != "" {
		return &division{why: why}
	}
	d := &division{workers: q.engine.workers.Resolve(ctx)}
	window := windowOf(p.Snap)
	d.slices = divide.Slices(grid, len(d.workers), q.engine.workers.PerWorker, divide.Extent{Bytes: e.Bytes, From: s.DivideBytes, Window: window, Windows: s.DivideWindows})
	switch {
	case len(d.workers) == 0:
		d.why = "no address of --query.workers is known"
	case len(d.slices) < 2:
		length := time.Duration(window) * time.Millisecond
		d.why = fmt.Sprintf("it has few steps, or not twice the %d windows of blocks of --query.divide-windows, of %s each", s.DivideWindows, length)
	}
	return d
}

// undividable returns why a planned range query cannot be divided, "" if it can.
func (q *Query) undividable(p *exec.Attempt) string {
	switch {
	case q.engine.settings.DelayedNameRemoval:
		return "with --query.delayed-name-removal, names depend on all steps"
	case p.HasDeltas():
		return "there are series of delta temporality, whose running totals begin with the query"
	}
	return divide.Refused(q.expr.Expr)
}

// windowOf returns the length (ms) of the windows of the blocks that hold most bytes of a snapshot.
func windowOf(s *catalog.Snapshot) int64 {
	bytes, most := map[int64]int64{key.WindowMillis: 0}, int64(key.WindowMillis)
	for i := range s.Segments {
		bytes[key.WindowMillis] += s.Segments[i].Size
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		bytes[b.Level.End(b.Window)-int64(b.Window)] += b.Bytes
	}
	for length, n := range bytes {
		if n > bytes[most] || n == bytes[most] && length > most {
			most = length
		}
	}
	return most
}

// Division describes how a planned query whose estimate is e is divided over workers, "" if the
// process has none.
func (q *Query) Division(ctx context.Context, p *exec.Attempt, planned *plan.Query, e request.Estimate) string {
	if q.engine.workers == nil {
		return ""
	}
	return q.division(ctx, p, planned, e).String()
}

// divided lets workers evaluate the query if it is large enough and can be divided. It returns nil
// if the query is to be evaluated undivided.
func (q *Query) divided(ctx context.Context, p *exec.Attempt, pl *plan.Plan, planned *plan.Query) (*divide.Answer, error) {
	x, s := q.engine, &q.engine.settings
	if x.workers == nil || q.piece != nil || q.entire || q.asked.Interval <= 0 || request.From(ctx).Quote != nil {
		return nil, nil
	}
	if bytesOf(p.Snap) <= s.DivideBytes { // most queries are so small that they need no estimate
		return nil, nil
	}
	_, e, err := p.Price(ctx, pl, planned)
	if err != nil {
		return nil, err
	}
	d := q.division(ctx, p, planned, e)
	if d.why != "" {
		return nil, nil
	}
	answers, err := q.pieces(ctx, p, d.workers, d.slices, e)
	return q.join(ctx, answers, err)
}

// pieces lets workers at addresses evaluate slices of the query, whose estimate is e; without
// addresses, this process does.
func (q *Query) pieces(ctx context.Context, p *exec.Attempt, addresses []string, slices []divide.Slice, e request.Estimate) ([]*divide.Answer, error) {
	x, s := q.engine, &q.engine.settings
	left := s.Timeout
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	options := divide.OptionsOf(s.UseStartTimestamps, p.Series.Rule(ctx))
	cut := func(slice divide.Slice) (*divide.Piece, error) {
		piece := &divide.Piece{
			Version: divide.Version, Tenant: tenant.From(ctx), Query: q.text,
			Start: timestamp.FromTime(q.asked.Start), End: timestamp.FromTime(q.asked.End), Step: q.asked.Interval.Milliseconds(),
			From: slice.From, Upto: slice.Upto, Lookback: q.asked.LookbackDelta.Milliseconds(), PerStep: q.stats.Samples.StepTrackingEnabled(),
			Options: options,
			Timeout: max(1, left.Milliseconds()), MaxBytes: s.MaxFetchedBytes, Estimated: e.Bytes / int64(len(slices)), Requests: e.Requests / int64(len(slices)),
		}
		_, asked, err := x.expression(piece)
		if err != nil {
			return nil, err
		}
		mint, maxt := promql.FindMinMaxTime(&asked)
		piece.Snapshot = narrowed(p, mint, maxt)
		return piece, nil
	}
	local := func(ctx context.Context, piece *divide.Piece) (*divide.Answer, error) {
		r := request.From(ctx)
		r.Bytes = nil // they are counted by join, as those of workers
		return x.Piece(request.With(ctx, r), q.view.Queryable, piece)
	}
	defer q.stats.Timers.GetTimer(stats.InnerEvalTime).Start().Stop()
	if len(addresses) > 0 {
		return x.workers.Run(ctx, addresses, slices, cut, local)
	}
	var answers []*divide.Answer
	for _, slice := range slices {
		piece, err := cut(slice)
		if err != nil {
			return nil, err
		}
		a, err := divide.Here(ctx, piece, nil, local)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// join returns the answer of the query whose slices have the answers, unless they ended with an
// error. It is nil if the query is to be evaluated undivided.
func (q *Query) join(ctx context.Context, answers []*divide.Answer, err error) (joined *divide.Answer, _ error) {
	if err == nil {
		joined, err = divide.Join(answers, q.text)
	}
	if errors.Is(err, divide.ErrWhole) {
		q.entire, q.keeping = true, nil
		q.exec.Logger.Debug("a divided query is evaluated undivided", "tenant", tenant.From(ctx), "query", q.text, "err", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := request.From(ctx)
	r.Took = nil // the workers account for it
	r.Count(joined.Stats.Storage)
	if n := joined.Series.TotalSamples(); n > q.engine.settings.MaxSamples {
		return nil, promql.ErrTooManySamples("query execution")
	}
	return joined, ctx.Err()
}

// narrowed returns the objects of an attempt for [mint, maxt] (ms).
func narrowed(p *exec.Attempt, mint, maxt int64) divide.Snapshot {
	if p.Wide {
		mint, maxt = mint-replica.Around, maxt+replica.Around
	}
	return divide.SnapshotOf(p.Snap.Narrow(mint, maxt), p.Wide)
}

// joined is the result of a divided query, as upstream's engine returns it.
func (q *Query) joined(a *divide.Answer) *promql.Result {
	to := q.stats.Samples
	to.TotalSamples, to.SamplesRead = a.Stats.Samples, a.Stats.SamplesRead
	to.UpdatePeak(max(a.Stats.Peak, a.Series.TotalSamples()))
	if steps := int(timesOf(&q.asked)); to.StepTrackingEnabled() && len(a.Stats.SamplesPerStep) == steps && len(a.Stats.SamplesReadStep) == steps {
		to.InitStepTracking(timestamp.FromTime(q.asked.Start), timestamp.FromTime(q.asked.End), q.asked.Interval.Milliseconds())
		copy(to.TotalSamplesPerStep, a.Stats.SamplesPerStep)
		copy(to.SamplesReadPerStep, a.Stats.SamplesReadStep)
	}
	q.engine.measured.query(&q.stats, true)
	return &promql.Result{Value: a.Series, Warnings: a.Notes}
}

// expression returns the expression of a piece, whose times no longer depend on the whole query,
// and the statement that upstream's engine prepares for the slice.
func (e *Engine) expression(p *divide.Piece) (*known, parser.EvalStmt, error) {
	at := func(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
	step := time.Duration(p.Step) * time.Millisecond
	asked := parser.EvalStmt{Start: at(p.From), End: at(p.Upto), Interval: step, LookbackDelta: time.Duration(p.Lookback) * time.Millisecond}
	of, err := e.parser.parsed(p.Query)
	if err != nil {
		return nil, asked, &badQuery{err}
	}
	k := *of
	expr, err := promql.PreprocessExpr(plan.Clone(of.Expr), at(p.Start), at(p.End), step)
	if err != nil {
		return nil, asked, &badQuery{err}
	}
	k.Expr = plan.Resolved(expr)
	asked.Expr, err = promql.PreprocessExpr(plan.Clone(k.Expr), asked.Start, asked.End, step)
	return &k, asked, err
}

// badQuery reports a piece, a question to cut into parts, or a snapshot that this process cannot
// take. Another one may.
type badQuery struct{ error }

func (e *badQuery) Unwrap() error { return e.error }

// BadQuery marks the error as the sender's.
func (*badQuery) BadQuery() bool { return true }

// Piece evaluates a piece of a range query of the tenant of ctx. It has the limits of a query, and
// takes its turn among the pieces, which never wait for queries: processes may be the workers of
// one another. The answer shares no memory with other queries.
func (e *Engine) Piece(ctx context.Context, of storage.Queryable, p *divide.Piece) (*divide.Answer, error) {
	x, of := executorOf(of) // whose errors are as they are
	if x == nil || p.Tenant != tenant.From(ctx) {
		return nil, &badQuery{fmt.Errorf("the piece is of tenant %q, the request of %q", p.Tenant, tenant.From(ctx))}
	}
	if own := divide.OptionsOf(e.settings.UseStartTimestamps, x.Series.Rule(ctx)); e.settings.DelayedNameRemoval || own != p.Options {
		return nil, &badQuery{fmt.Errorf("the settings of this process differ from those of the piece: %+v, not %+v", own, p.Options)}
	}
	k, asked, err := e.expression(p)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p.Timeout)*time.Millisecond)
	defer cancel()
	opts := promql.NewPrometheusQueryOpts(p.PerStep, asked.LookbackDelta)
	q, err := e.prepared(of, opts, p.Query, k, asked, func(v *view) (promql.Query, error) {
		return e.upstream.NewRangeQuery(ctx, v, opts, p.Query, asked.Start, asked.End, asked.Interval)
	})
	if err != nil {
		return nil, &badQuery{err}
	}
	q.piece = p
	// Upstream's query has parsed the text, and knows only the times of the slice.
	if q.left, err = promql.PreprocessExpr(plan.Clone(k.Expr), asked.Start, asked.End, asked.Interval); err != nil {
		return nil, &badQuery{err}
	}
	r, read := request.From(ctx), &request.Stats{}
	r.Snapshot = &request.Snapshot{Snapshot: p.Snapshot.Of(p.Tenant), Wide: p.Snapshot.Wide, Pinned: true}
	r.Stats, r.Quote, r.AsOf, r.Since = read, nil, time.Time{}, time.Time{}
	res := q.Exec(request.With(ctx, r)) // it is not closed: its memory is the answer's
	if damaged := new(source.DamagedError); errors.As(res.Err, &damaged) {
		return nil, fmt.Errorf("%w: %w", divide.ErrWhole, res.Err)
	}
	if res.Err != nil {
		return nil, res.Err
	}
	m, ok := res.Value.(promql.Matrix)
	if !ok {
		return nil, fmt.Errorf("evaluate %s: the answer is a %s", p.Slice(), res.Value.Type())
	}
	s := q.stats.Samples
	return &divide.Answer{Series: m, Notes: res.Warnings, Stats: divide.Stats{
		Samples: s.TotalSamples, SamplesRead: s.SamplesRead, Peak: s.PeakSamples,
		SamplesPerStep: s.TotalSamplesPerStep, SamplesReadStep: s.SamplesReadPerStep, Storage: read.Totals(),
	}}, nil
}
