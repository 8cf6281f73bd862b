package rulefn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

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

// settle notes that the notifications of a letter are sent, except those that are left. Alertmanager
// merges what it gets twice, so for it the process alone remembers this. For other receivers, and
// for a group that the tenant has removed, which is never evaluated again, the outbox in the store
// is replaced.
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

// retention is how long after its end an alert is sent, if it could not be sent before.
func (r *Runner) retention() time.Duration {
	if r.set.Notify.Direct() {
		return max(ResolvedRetention, r.set.Notify.Repeat())
	}
	return ResolvedRetention
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
