package rulefn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

// redeliver writes the samples in outboxes that may not be delivered, because an invocation was
// killed, its receiver was away, or another process has evaluated the groups. They must be stored
// before the groups are evaluated again; those that are stored already count once. Notifications in
// these outboxes become unsent ones of the groups.
func (r *Runner) redeliver(ctx context.Context, tenant string, all []*member, at time.Time) error {
	var late []*member
	for _, m := range all {
		if !m.state.Outbox.Empty() && !r.wasDelivered(m.key, m.etag) {
			late = append(late, m)
		}
	}
	// They are written in as few messages as possible: with a queue, most evaluations are those
	// of other processes.
	var messages [][]byte
	bytes, samples := 0, 0
	for i, m := range late {
		if o := &m.state.Outbox; o.Count > 0 {
			message, err := snappy.Decode(nil, o.Samples)
			if err != nil {
				return fmt.Errorf("deliver the samples of %d groups again: group %q of namespace %q: %w", len(late), m.Name(), m.Namespace(), err)
			}
			messages = append(messages, message)
			bytes, samples = bytes+len(message), samples+o.Count
		}
		if samples == 0 || bytes < maxJoinedBytes && i < len(late)-1 {
			continue
		}
		joined, err := appender.Join(messages)
		if err == nil {
			err = r.write(ctx, tenant, joined, samples)
		}
		if err != nil {
			return fmt.Errorf("deliver the samples of %d groups again: %w", len(late), err)
		}
		messages, bytes, samples = nil, 0, 0
	}
	r.met.redelivered.Add(float64(len(late)))
	for _, m := range late {
		if r.Sender != nil {
			// Notifications of alerts that ended long ago are not sent again.
			retention := ResolvedRetention
			if r.set.Notify.Direct() {
				retention = max(retention, r.set.Notify.Repeat())
			}
			m.unsent = slices.DeleteFunc(slices.Clone(m.state.Outbox.Notifications), func(n rulestate.Notification) bool { return at.Sub(n.EndsAt) > retention })
		}
		if len(m.unsent) == 0 {
			r.setDelivered(m.key, m.etag)
		}
	}
	return nil
}

// maxJoinedBytes is the size of joined messages from which on they are written.
const maxJoinedBytes = 8 << 20

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

// deliver writes the samples of states that were committed in this run, in one message.
func (r *Runner) deliver(ctx context.Context, tenant string, committed []*member, sum *Report) error {
	var txs []*appender.Transaction
	samples := 0
	for _, m := range committed {
		txs = append(txs, m.txs...)
		samples += m.state.Outbox.Count
	}
	if samples == 0 {
		return nil
	}
	message, err := appender.Encode(txs)
	if err == nil {
		err = r.write(ctx, tenant, message, samples)
	}
	if err != nil {
		return fmt.Errorf("deliver %d samples, which wait in the states: %w", samples, err)
	}
	sum.Samples += samples
	return nil
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

// mail are the notifications that a run leaves to be sent.
type mail struct {
	tenant  string
	letters []letter
}

// letter has the notifications of a group that may not have been sent: each event of former
// evaluations, then those of the evaluations that were committed in this run.
type letter struct {
	*member

	notices []rulestate.Notification
}

// sendMail sends notifications, and returns their number. Those that cannot be sent wait in the
// states. Alertmanagers get all of a tenant at once, other receivers those of one group after
// another.
func (r *Runner) sendMail(ctx context.Context, m mail) (sent int, err error) {
	if len(m.letters) == 0 {
		return 0, nil
	}
	size := len(m.letters)
	if r.set.Notify.Direct() {
		size = 1
	}
	for letters := range slices.Chunk(m.letters, size) {
		n, refused, e := r.send(ctx, m.tenant, letters)
		sent, err = sent+n, errors.Join(err, refused)
		if e != nil {
			return sent, errors.Join(err, e)
		}
	}
	return sent, err
}

// send sends letters, and notes what need not be sent again. refused are errors that the next run
// does not repeat.
func (r *Runner) send(ctx context.Context, tenant string, letters []letter) (sent int, refused, err error) {
	var all []rulestate.Notification
	for _, l := range letters {
		all = append(all, l.notices...)
	}
	var d notify.Delivery
	if r.Sender != nil && len(all) > 0 {
		d, err = r.Sender.Send(ctx, tenant, all)
	}
	failed := 0
	if err != nil {
		if failed = d.Sent; r.set.Notify.Direct() {
			failed = len(d.Left)
		}
		err = fmt.Errorf("send %d notifications, which wait in the states: %w", failed, err)
	}
	r.met.notifications.WithLabelValues("failed").Add(float64(failed))
	r.met.notifications.WithLabelValues("sent").Add(float64(d.Sent - failed))
	errs := []error{err}
	for _, l := range letters {
		errs = append(errs, r.settle(ctx, tenant, l, d.Left, err == nil))
	}
	return d.Sent - failed, d.Refused, errors.Join(errs...)
}

// settle notes that the notifications of a letter are sent, except those that are left.
// Alertmanager merges what it gets twice, so for it the process alone remembers this. For other
// receivers, and for a group that the tenant has removed, which is never evaluated again, the
// outbox in the store is replaced.
func (r *Runner) settle(ctx context.Context, tenant string, l letter, left []rulestate.Notification, done bool) error {
	direct := r.set.Notify.Direct() && r.Sender != nil && len(left) < len(l.notices)
	if direct || done && l.gone && l.committed {
		state := l.stored
		if l.committed {
			state = l.state
		}
		state.Outbox = rulestate.Outbox{Notifications: left}
		etag, err := rulestate.Commit(ctx, r.Store, tenant, state, l.etag, r.set.MaxStateBytes, "--ruler.max-state-bytes")
		switch {
		case errors.Is(err, rulestate.ErrOvertaken): // the other run has them
		case err != nil && done:
			r.setDelivered(l.key, l.etag)
			return fmt.Errorf("note that %d notifications are sent: %w", len(l.notices), err)
		case err != nil:
			return fmt.Errorf("note that %d of %d notifications are sent: %w", len(l.notices)-len(left), len(l.notices), err)
		default:
			l.etag = etag
		}
	}
	if done {
		r.setDelivered(l.key, l.etag)
	}
	return nil
}

// maxWaiting is the number of notifications of former evaluations that wait in a state. Beyond it,
// the oldest are dropped: a receiver that is away must not keep a group from being evaluated.
const maxWaiting = 10_000

// waiting returns the notifications of former evaluations that wait beside those of now while the
// receiver is away: of each time that an alert fired, the latest one that it fires, and its end.
// Others only repeat them.
func waiting(former, now []rulestate.Notification) (out []rulestate.Notification) {
	type firing struct {
		labels string
		since  int64
	}
	of := func(n rulestate.Notification) firing {
		return firing{string(n.Labels.Bytes(nil)), n.StartsAt.UnixNano()}
	}
	last := map[firing]time.Time{} // the latest end in later notifications
	note := func(n rulestate.Notification) {
		if n.EndsAt.After(last[of(n)]) {
			last[of(n)] = n.EndsAt
		}
	}
	for _, n := range now {
		note(n)
	}
	for _, n := range slices.Backward(former) {
		// An alert that has ended has an end that is before the one that it had while it fired.
		if last[of(n)].Before(n.EndsAt) {
			out = append(out, n)
		}
		note(n)
	}
	slices.Reverse(out)
	return out
}
