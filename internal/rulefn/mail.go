package rulefn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/rulestate"
	"github.com/promlake/promlake/internal/rulestep"
)

// mail are the notifications that a run leaves to be sent.
type mail struct {
	tenant  string
	from    []*member // whose outboxes are delivered when the notifications are sent
	notices []rulestate.Notification
}

// newMail returns the notifications of all evaluations that may not have been sent: each event of
// former ones, then those of the states that were committed in this run.
func newMail(tenant string, committed, all []*member) mail {
	m := mail{tenant: tenant}
	for _, one := range all {
		if !one.committed && len(one.unsent) > 0 {
			m.from = append(m.from, one)
		}
		m.notices = append(m.notices, one.unsent...)
	}
	for _, one := range committed {
		m.from = append(m.from, one)
		m.notices = append(m.notices, one.notices...)
	}
	return m
}

// sendMail sends notifications, and returns their number. Those that cannot be sent wait in the
// states.
func (r *Runner) sendMail(ctx context.Context, m mail) (sent int, err error) {
	if r.Sender != nil && len(m.notices) > 0 {
		sent, err = r.Sender.Send(ctx, m.tenant, m.notices)
		result := "sent"
		if err != nil {
			result = "failed"
		}
		r.met.notifications.WithLabelValues(result).Add(float64(sent))
		if err != nil {
			return 0, fmt.Errorf("send %d notifications, which wait in the states: %w", sent, err)
		}
	}
	var errs []error
	for _, one := range m.from {
		r.setDelivered(one.key, one.etag)
		if one.gone && one.committed {
			errs = append(errs, r.empty(ctx, m.tenant, one))
		}
	}
	return sent, errors.Join(errs...)
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

// recent returns notifications without those of alerts that ended so long before a time that they
// are not sent again.
func recent(all []rulestate.Notification, at time.Time) []rulestate.Notification {
	return slices.DeleteFunc(slices.Clone(all), func(n rulestate.Notification) bool { return at.Sub(n.EndsAt) > rulestep.ResolvedRetention })
}

// latest returns the last notification of each alert of former evaluations that has none of now:
// while Alertmanager is away, it is all that must wait.
func latest(former, now []rulestate.Notification) (out []rulestate.Notification) {
	known := map[string]bool{}
	for _, n := range now {
		known[string(n.Labels.Bytes(nil))] = true
	}
	for _, n := range slices.Backward(former) {
		if alert := string(n.Labels.Bytes(nil)); !known[alert] {
			known[alert] = true
			out = append(out, n)
		}
	}
	slices.Reverse(out)
	return out
}
