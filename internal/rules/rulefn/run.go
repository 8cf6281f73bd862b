package rulefn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/snappy"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

const (
	requests = 16 // states that are read or written at once
	senders  = 64 // tenants whose notifications are sent at once
)

// member is a group in a run.
type member struct {
	*group

	state     *rulestate.Group         // after the evaluations of this run
	stored    *rulestate.Group         // as it was read
	etag      string                   // of the state in the store
	unsent    []rulestate.Notification // of former evaluations, which may not be sent
	failed    bool                     // not to be evaluated any more in this run
	changed   bool                     // evaluated in this run
	committed bool                     // the evaluations of this run count
	txs       []*appender.Transaction  // of this run
	notices   []rulestate.Notification // of this run
}

// all runs the work of tenants, one after another. Notifications are sent meanwhile: a receiver
// that does not answer delays no evaluation.
func (r *Runner) all(ctx context.Context, todo []work, at time.Time) (sum Report, err error) {
	errs, sent := make([]error, 2*len(todo)), make([]int, len(todo))
	var sending errgroup.Group
	slots := make(chan struct{}, senders) // the evaluations do not wait for one
	for i, w := range todo {
		one, m, err := r.run(ctx, w, at)
		sum.Groups, sum.Evaluations, sum.Failed = sum.Groups+one.Groups, sum.Evaluations+one.Evaluations, sum.Failed+one.Failed
		sum.Missed, sum.Samples, sum.Notifications = sum.Missed+one.Missed, sum.Samples+one.Samples, sum.Notifications+one.Notifications
		errs[2*i] = w.wrap(err)
		sending.Go(func() error {
			slots <- struct{}{}
			defer func() { <-slots }()
			n, err := r.sendMail(ctx, m)
			sent[i], errs[2*i+1] = n, w.wrap(err)
			return nil
		})
	}
	_ = sending.Wait() // the errors are in errs
	for _, n := range sent {
		sum.Notifications += n
	}
	return sum, errors.Join(errs...)
}

// run evaluates groups of a tenant for all times that are due, and returns the notifications that
// are to be sent. What an error prevents is due again at the next run. A run of another invocation
// may be under way: of two evaluations of a group the one that is committed first counts.
func (r *Runner) run(ctx context.Context, w work, at time.Time) (sum Report, m mail, err error) {
	all, errs := r.states(ctx, w)
	if err := r.redeliver(ctx, w.tenant, all, at); err != nil {
		return sum, m, notify.Few(append(errs, err))
	}
	evaluated := make([]time.Time, len(all))
	groups := make([]*group, len(all))
	for i, m := range all {
		evaluated[i], groups[i] = m.state.Evaluated, m.group
	}
	todo, missed := moments(groups, evaluated, at, r.set.CatchUp)
	errs = append(errs, r.evaluate(ctx, w.tenant, all, todo, &sum)...)
	for i, n := range missed {
		if all[i].changed {
			sum.Missed += n
		}
	}
	committed, failed := r.commit(ctx, w.tenant, all)
	errs = append(errs, failed...)
	r.met.missed.Add(float64(sum.Missed))
	if err := r.deliver(ctx, w.tenant, committed, &sum); err != nil {
		errs = append(errs, err)
		committed = nil // samples come before notifications
	}
	m.tenant = w.tenant
	for _, one := range all {
		if !one.committed && len(one.unsent) > 0 {
			m.letters = append(m.letters, letter{one, one.unsent})
		}
	}
	for _, one := range committed {
		m.letters = append(m.letters, letter{one, slices.Concat(one.unsent, one.notices)})
	}
	return sum, m, notify.Few(errs)
}

// each calls f for the members, some at once, and returns the errors in their order.
func each(all []*member, f func(m *member) error) []error {
	errs := make([]error, len(all))
	var g errgroup.Group
	g.SetLimit(requests)
	for i, m := range all {
		g.Go(func() error { errs[i] = f(m); return nil })
	}
	_ = g.Wait() // the errors are in errs
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// states reads the states of the groups. A group whose state cannot be read is left out.
func (r *Runner) states(ctx context.Context, w work) (all []*member, errs []error) {
	for _, g := range w.groups {
		all = append(all, &member{group: g})
	}
	errs = each(all, func(m *member) (err error) {
		m.stored, m.etag, err = rulestate.Read(ctx, r.Store, w.tenant, m.Namespace(), m.Name())
		m.state = m.stored
		return err
	})
	return slices.DeleteFunc(all, func(m *member) bool { return m.stored == nil }), errs
}

// commit replaces the states of the groups that were evaluated, and returns those that count now.
func (r *Runner) commit(ctx context.Context, tenant string, all []*member) (committed []*member, errs []error) {
	errs = each(all, func(m *member) error {
		if !m.changed {
			return nil
		}
		var etag string
		err := r.fill(ctx, tenant, m)
		if err == nil {
			etag, err = rulestate.Commit(ctx, r.Store, tenant, m.state, m.etag, r.set.MaxStateBytes, "--ruler.max-state-bytes")
		}
		result := "failed"
		switch {
		case err == nil:
			m.etag, m.committed, result = etag, true, "committed"
		case errors.Is(err, rulestate.ErrOvertaken):
			err, result = nil, "overtaken"
		}
		r.met.groups.WithLabelValues(result).Inc()
		return err
	})
	for _, m := range all {
		if m.committed {
			committed = append(committed, m)
		}
	}
	return committed, errs
}

// fill puts what the run has to deliver into the outbox of the state.
func (r *Runner) fill(ctx context.Context, tenant string, m *member) error {
	o := &m.state.Outbox
	*o = rulestate.Outbox{}
	if r.Sender != nil {
		former := waiting(m.unsent, m.notices)
		if more := len(former) - maxWaiting; more > 0 {
			former = former[more:]
			r.met.notifications.WithLabelValues("dropped").Add(float64(more))
			r.Logger.ErrorContext(ctx, "notifications are dropped, because too many of a group wait", "tenant", tenant, "namespace", m.Namespace(), "group", m.Name(), "limit", maxWaiting, "dropped", more)
		}
		o.Notifications = append(former, m.notices...)
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
