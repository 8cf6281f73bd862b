package rulefn

import (
	"context"
	"errors"
	"fmt"

	"github.com/klauspost/compress/snappy"

	"github.com/promlake/promlake/internal/appender"
	"github.com/promlake/promlake/internal/rulestate"
)

// redeliver delivers the outboxes of states that may not be delivered, because an invocation was
// killed, its receiver was away, or another process has evaluated the groups. Samples must be
// stored before the groups are evaluated again. Notifications that cannot be sent wait in the
// states.
func (r *Runner) redeliver(ctx context.Context, tenant string, all []*member) error {
	var notices []rulestate.Notification
	var late []*member
	for _, m := range all {
		if m.state.Outbox.Empty() || r.wasDelivered(m.key, m.etag) {
			continue
		}
		late = append(late, m)
		if err := r.rewrite(ctx, tenant, &m.state.Outbox); err != nil {
			r.wait(late, true)
			return fmt.Errorf("deliver the samples of group %q of namespace %q: %w", m.Name(), m.Namespace(), err)
		}
		notices = append(notices, m.state.Outbox.Notifications...)
	}
	if len(late) == 0 {
		return nil
	}
	r.met.redelivered.Add(float64(len(late)))
	err := r.send(ctx, tenant, notices)
	for _, m := range late {
		if err != nil {
			m.unsent = m.state.Outbox.Notifications
		} else {
			r.setDelivered(m.key, m.etag)
		}
	}
	r.wait(late, err != nil)
	if err != nil {
		r.Logger.ErrorContext(ctx, "notifications wait", "tenant", tenant, "notifications", len(notices), "err", err)
	}
	return nil
}

// rewrite writes the samples of an outbox again. Those that are stored already count once.
func (r *Runner) rewrite(ctx context.Context, tenant string, o *rulestate.Outbox) error {
	if o.Count == 0 {
		return nil
	}
	message, err := snappy.Decode(nil, o.Samples)
	if err != nil {
		return err
	}
	return r.write(ctx, tenant, message, o.Count)
}

// write makes samples durable. What is refused is counted and logged, and not written again.
func (r *Runner) write(ctx context.Context, tenant string, message []byte, samples int) error {
	refused, err := r.Sink.Write(ctx, tenant, message, samples)
	if err != nil {
		return err
	}
	r.met.samples.Add(float64(samples))
	if refused != nil {
		r.met.refused.Inc()
		r.Logger.WarnContext(ctx, "a part of the results of rules was refused", "tenant", tenant, "err", refused)
	}
	return nil
}

// send sends notifications.
func (r *Runner) send(ctx context.Context, tenant string, all []rulestate.Notification) error {
	if r.Sender == nil || len(all) == 0 {
		return nil
	}
	err := r.Sender.Send(ctx, tenant, all)
	result := "sent"
	if err != nil {
		result = "failed"
	}
	r.met.notifications.WithLabelValues(result).Add(float64(len(all)))
	return err
}

// deliver delivers the outboxes of states that were committed in this run: the samples of all of
// them in one message, then the notifications.
func (r *Runner) deliver(ctx context.Context, tenant string, committed []*member, sum *Report) error {
	var txs []*appender.Transaction
	var notices []rulestate.Notification
	samples := 0
	for _, m := range committed {
		txs = append(txs, m.txs...)
		samples += m.state.Outbox.Count
		notices = append(notices, m.state.Outbox.Notifications...)
	}
	err := r.deliverAll(ctx, tenant, txs, samples, notices)
	r.wait(committed, err != nil)
	if err != nil {
		return fmt.Errorf("deliver %d samples and %d notifications, which wait in the states: %w", samples, len(notices), err)
	}
	sum.Samples += samples
	sum.Notifications += len(notices)
	var errs []error
	for _, m := range committed {
		r.setDelivered(m.key, m.etag)
		if m.gone {
			errs = append(errs, r.empty(ctx, tenant, m))
		}
	}
	return errors.Join(errs...)
}

func (r *Runner) deliverAll(ctx context.Context, tenant string, txs []*appender.Transaction, samples int, notices []rulestate.Notification) error {
	if samples > 0 {
		message, err := appender.Encode(txs)
		if err != nil {
			return err
		}
		if err := r.write(ctx, tenant, message, samples); err != nil {
			return err
		}
	}
	return r.send(ctx, tenant, notices)
}

// empty empties the outbox of a group that the tenant has removed, which is never evaluated again.
func (r *Runner) empty(ctx context.Context, tenant string, m *member) error {
	m.state.Outbox = rulestate.Outbox{}
	_, err := rulestate.Commit(ctx, r.Store, tenant, m.state, m.etag, r.set.MaxStateBytes, "--ruler.max-state-bytes")
	if errors.Is(err, rulestate.ErrOvertaken) {
		return nil
	}
	return err
}

// maxRemembered bounds the versions that a process remembers. Forgetting one lets its outbox be
// delivered again, which has no effect.
const maxRemembered = 100_000

// wasDelivered reports whether the outbox of a version of a state is known to be delivered.
func (r *Runner) wasDelivered(key, etag string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delivered[key] == etag
}

func (r *Runner) setDelivered(key, etag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.delivered) >= maxRemembered {
		clear(r.delivered)
	}
	r.delivered[key] = etag
}

// wait notes whether outboxes are known to wait: their groups are due at each tick.
func (r *Runner) wait(all []*member, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range all {
		if waits {
			r.waiting[m.key] = true
		} else {
			delete(r.waiting, m.key)
		}
	}
}

func (r *Runner) waits(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[key]
}
