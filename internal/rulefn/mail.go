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

// newMail returns the notifications of the states that were committed in a run, then those that
// still wait in the states of other groups.
func newMail(tenant string, committed, all []*member) mail {
	m := mail{tenant: tenant}
	for _, one := range committed {
		m.from = append(m.from, one)
		m.notices = append(m.notices, one.state.Outbox.Notifications...)
	}
	for _, one := range all {
		if !one.committed && len(one.unsent) > 0 {
			m.from = append(m.from, one)
			m.notices = append(m.notices, one.unsent...)
		}
	}
	return m
}

// sendMail sends notifications, and returns their number. Those that cannot be sent wait in the
// states.
func (r *Runner) sendMail(ctx context.Context, m mail) (sent int, err error) {
	if r.Sender != nil && len(m.notices) > 0 {
		err := r.Sender.Send(ctx, m.tenant, m.notices)
		result := "sent"
		if err != nil {
			result = "failed"
		}
		r.met.notifications.WithLabelValues(result).Add(float64(len(m.notices)))
		if err != nil {
			return 0, fmt.Errorf("send %d notifications, which wait in the states: %w", len(m.notices), err)
		}
		sent = len(m.notices)
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

// latest returns the last notification of each alert, which is all that Alertmanager needs, without
// those of alerts that have ended so long before a time that they are not sent again.
func latest(all []rulestate.Notification, at time.Time) (out []rulestate.Notification) {
	known := map[string]bool{}
	for _, n := range slices.Backward(all) {
		if alert := string(n.Labels.Bytes(nil)); !known[alert] {
			known[alert] = true
			if at.Sub(n.EndsAt) <= rulestep.ResolvedRetention {
				out = append(out, n)
			}
		}
	}
	slices.Reverse(out)
	return out
}
