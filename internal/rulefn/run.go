package rulefn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/prometheus/promql"
	promrules "github.com/prometheus/prometheus/rules"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/appender"
	"github.com/promlake/promlake/internal/rulestate"
)

// requests is the number of states that are read or written at once.
const requests = 16

// member is a group in a run.
type member struct {
	*group

	state   *rulestate.Group
	etag    string
	unsent  []rulestate.Notification // of former evaluations, which were not delivered
	changed bool                     // evaluated in this run
	txs     []*appender.Transaction  // of this run
	notices []rulestate.Notification // of this run
}

// run evaluates groups of a tenant for all times that are due. What an error prevents is due again
// at the next run. A run of another invocation may be under way: of two evaluations of a group the
// one that is committed first counts.
func (r *Runner) run(ctx context.Context, w work, at time.Time) (sum Report, err error) {
	all, err := r.states(ctx, w)
	if err != nil {
		return sum, w.wrap(err)
	}
	if err := r.redeliver(ctx, w.tenant, all); err != nil {
		return sum, w.wrap(err)
	}
	evaluated := make([]time.Time, len(all))
	groups := make([]*group, len(all))
	for i, m := range all {
		evaluated[i], groups[i] = m.state.Evaluated, m.group
	}
	todo, missed := moments(groups, evaluated, at, r.set.CatchUp)
	stopped := r.evaluate(ctx, w.tenant, all, todo, &sum)
	for i, n := range missed {
		if all[i].changed {
			sum.Missed += n
		}
	}
	committed, err := r.commit(ctx, w.tenant, all)
	r.met.missed.Add(float64(sum.Missed))
	return sum, w.wrap(errors.Join(stopped, err, r.deliver(ctx, w.tenant, committed, &sum)))
}

// states reads the states of the groups.
func (r *Runner) states(ctx context.Context, w work) ([]*member, error) {
	out := make([]*member, len(w.groups))
	var g errgroup.Group
	g.SetLimit(requests)
	for i, one := range w.groups {
		g.Go(func() (err error) {
			m := &member{group: one}
			m.state, m.etag, err = rulestate.Read(ctx, r.Store, w.tenant, one.Namespace(), one.Name())
			out[i] = m
			return err
		})
	}
	return out, g.Wait()
}

// evaluate evaluates groups at the moments, in memory, until little time is left. An error ends it;
// evaluations before it count.
func (r *Runner) evaluate(ctx context.Context, tenant string, all []*member, todo []moment, sum *Report) error {
	enough := share(ctx, 3, 5)
	results, reading := newResults(r.Reading, r.Parser), r.Enter(ctx, tenant)
	for _, next := range todo {
		if results.full() || !enough() {
			return nil // the rest is due at the next run
		}
		m := all[next.group]
		from := len(results.txs)
		state, res, err := m.Eval(reading, m.state, next.at, func(ctx context.Context, expr string, t time.Time) (promql.Vector, error) {
			return promrules.EngineQueryFunc(r.Reading.Engine(), results.data(expr))(ctx, expr, t)
		}, results.appendable)
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
		r.met.evaluated(m.Len(), res.Failures)
		for _, err := range res.Failures {
			r.Logger.WarnContext(ctx, "a rule failed", "tenant", tenant, "err", err)
		}
	}
	return nil
}

// commit replaces the states of the groups that were evaluated, and returns those that count now.
func (r *Runner) commit(ctx context.Context, tenant string, all []*member) (committed []*member, err error) {
	errs, ok := make([]error, len(all)), make([]bool, len(all))
	var g errgroup.Group
	g.SetLimit(requests)
	for i, m := range all {
		if !m.changed {
			continue
		}
		g.Go(func() error {
			if errs[i] = m.fill(r.Sender != nil); errs[i] == nil {
				m.etag, errs[i] = rulestate.Commit(ctx, r.Store, tenant, m.state, m.etag, r.set.MaxStateBytes, "--ruler.max-state-bytes")
			}
			switch {
			case errs[i] == nil:
				ok[i] = true
				r.met.groups.WithLabelValues("committed").Inc()
			case errors.Is(errs[i], rulestate.ErrOvertaken):
				r.met.groups.WithLabelValues("overtaken").Inc()
				errs[i] = nil
			default:
				r.met.groups.WithLabelValues("failed").Inc()
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in errs
	for i, m := range all {
		if ok[i] {
			committed = append(committed, m)
		}
	}
	return committed, errors.Join(errs...)
}

// fill puts what the run has to deliver into the outbox of the state.
func (m *member) fill(notify bool) error {
	o := &m.state.Outbox
	*o = rulestate.Outbox{}
	if notify {
		o.Notifications = latest(m.unsent, m.notices)
	}
	for _, tx := range m.txs {
		o.Count += len(tx.Samples)
	}
	if o.Count == 0 {
		return nil
	}
	message, err := appender.Encode(m.txs)
	if err != nil {
		return fmt.Errorf("group %q of namespace %q: %w", m.Name(), m.Namespace(), err)
	}
	o.Samples = snappy.Encode(nil, message)
	return nil
}

// latest returns the notifications of this run after those of former ones which no newer one
// replaces: Alertmanager needs the latest of each alert only.
func latest(former, now []rulestate.Notification) (out []rulestate.Notification) {
	replaced := map[string]bool{}
	for _, n := range now {
		replaced[string(n.Labels.Bytes(nil))] = true
	}
	for _, n := range former {
		if !replaced[string(n.Labels.Bytes(nil))] {
			out = append(out, n)
		}
	}
	return append(out, now...)
}

// share returns a function that reports whether less than a share of the time until the deadline of
// ctx has passed.
func share(ctx context.Context, of, all time.Duration) func() bool {
	end, ok := ctx.Deadline()
	if !ok {
		return func() bool { return ctx.Err() == nil }
	}
	begin := time.Now()
	latest := begin.Add(end.Sub(begin) * of / all)
	return func() bool { return ctx.Err() == nil && time.Now().Before(latest) }
}
