package rulefn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	promrules "github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/ruleeval"
)

// evaluate evaluates groups at the moments, in memory, in three fifths of the time that is left:
// the rest is for commits and deliveries. A group whose evaluation fails is left to the next run;
// its evaluations before that count.
func (r *Runner) evaluate(ctx context.Context, tenant string, all []*member, todo []moment, sum *Report) (errs []error) {
	ctx, cancel := budget(ctx, 3, 5)
	defer cancel()
	results, reading := newResults(r.Reading, r.Parser), r.Enter(ctx, tenant)
	for i, next := range todo {
		m := all[next.group]
		switch {
		case m.failed:
			continue
		case ctx.Err() != nil:
			return append(errs, fmt.Errorf("%d of %d evaluations of groups wait for the next run, because there is no time left: %w", len(todo)-i, len(todo), context.Cause(ctx)))
		case results.memory.Bytes() > maxResultBytes:
			return append(errs, fmt.Errorf("%d of %d evaluations of groups wait for the next run, because the results of one run may take about %d bytes", len(todo)-i, len(todo), maxResultBytes))
		}
		from := len(results.txs)
		if err := r.step(reading, tenant, m, next.at, results, sum); err != nil {
			m.failed = true
			errs = append(errs, err)
			if err := results.undo(from); err != nil {
				return append(errs, err)
			}
		}
	}
	return errs
}

// step evaluates a group once. It may take three quarters of the time that is left, so that groups
// after it have their turn, too.
func (r *Runner) step(ctx context.Context, tenant string, m *member, at time.Time, results *results, sum *Report) error {
	ctx, cancel := budget(ctx, 3, 4)
	defer cancel()
	from := len(results.txs)
	query := func(ctx context.Context, expr string, t time.Time) (promql.Vector, error) {
		return promrules.EngineQueryFunc(r.Reading.Engine(), results.data(expr))(ctx, expr, t)
	}
	state, res, err := m.Eval(ctx, m.state, at, Data{Query: query, Past: r.Reading, To: results.appendable})
	if err != nil {
		return err
	}
	if !m.changed {
		sum.Groups++
	}
	m.state, m.changed = state, true
	m.txs = append(m.txs, results.txs[from:]...)
	m.notices = append(m.notices, res.Notifications...)
	sum.Evaluations += m.Len()
	sum.Failed += len(res.Failures)
	failed := min(len(res.Failures), m.Len())
	r.met.evaluations.WithLabelValues("failed").Add(float64(failed))
	r.met.evaluations.WithLabelValues("ok").Add(float64(m.Len() - failed))
	for _, err := range res.Failures {
		r.Logger.WarnContext(ctx, "a rule failed", "tenant", tenant, "err", err)
	}
	return nil
}

// budget returns ctx for a share of the time until its deadline, if it has one.
func budget(ctx context.Context, of, all time.Duration) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	share := time.Until(end) * of / all
	return context.WithTimeoutCause(ctx, share, fmt.Errorf("it may take %s, which is %d/%d of the time that was left: %w", share, of, all, context.DeadlineExceeded))
}

// maxResultBytes is the memory of results from which on a run evaluates no more.
const maxResultBytes = 128 << 20

// results are what the rules of a run have written. Rules that follow see them, before they are in
// the store.
type results struct {
	reading    storage.Queryable
	parser     parser.Parser
	memory     *ruleeval.Memory
	txs        []*appender.Transaction
	appendable storage.Appendable
	selectors  map[string][][]*labels.Matcher // by expression
}

func newResults(reading storage.Queryable, p parser.Parser) *results {
	r := &results{reading: reading, parser: p, selectors: map[string][][]*labels.Matcher{}}
	r.restart()
	return r
}

// restart empties what is seen and what was appended.
func (r *results) restart() {
	r.memory = ruleeval.NewMemory(math.MaxInt64, "")
	r.appendable = appender.V1{Appendable: appender.New(func(tx *appender.Transaction) error {
		r.txs = append(r.txs, tx)
		return r.memory.Add(tx)
	})}
}

// undo forgets all transactions but the first n: an evaluation that does not count has no results.
func (r *results) undo(n int) error {
	if len(r.txs) == n {
		return nil
	}
	r.txs = r.txs[:n]
	r.restart()
	for _, tx := range r.txs {
		if err := r.memory.Add(tx); err != nil {
			return err
		}
	}
	return nil
}

// data returns what an expression reads: the store alone if none of the results can match, because
// reads of several storages cannot be pushed down.
func (r *results) data(expr string) storage.Queryable {
	selectors, known := r.selectors[expr]
	if !known {
		if e, err := r.parser.ParseExpr(expr); err == nil {
			var reads [][]*labels.Matcher
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				switch x := n.(type) {
				case *parser.VectorSelector:
					reads = append(reads, x.LabelMatchers)
				case *parser.Call:
					if x.Func.Name == "info" { // it finds metrics by itself
						reads = append(reads, nil)
					}
				}
				return nil
			})
			selectors = reads
		}
		r.selectors[expr] = selectors
	}
	if slices.ContainsFunc(selectors, r.memory.MayHave) {
		return ruleeval.Layers{r.reading, r.memory}
	}
	return r.reading
}
