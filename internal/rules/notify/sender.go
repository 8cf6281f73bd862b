package notify

import (
	"context"
	"net/url"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

// tenantLabel names the tenant in notifications: Alertmanager would take equal alerts of two
// tenants for one.
const tenantLabel = "tenant"

// Delivery is what became of notifications.
type Delivery struct {
	// Sent is the number of those that were to be sent: relabeling did not drop them.
	Sent int
	// Left are those that are not known to be accepted, if the receiver takes each for itself.
	Left []rulestate.Notification
	// Refused says what the receiver will never accept. It is not in Left.
	Refused error
}

// Sender sends notifications to one kind of receiver. It is safe for concurrent use.
type Sender struct {
	// external are the labels that notifications get unless their alerts have them.
	external labels.Labels
	// relabeling changes and drops notifications that have these labels.
	relabeling []*relabel.Config
	to         receiver
}

// alert is a notification as its receiver gets it.
type alert struct {
	rulestate.Notification // with the labels that are sent

	from rulestate.Notification
}

// receiver is where alerts go.
type receiver interface {
	// deliver returns when the receiver has accepted the alerts, the oldest first.
	deliver(ctx context.Context, all []alert) (Delivery, error)
}

// Send returns when each receiver has accepted the notifications of a tenant. With an error it is
// not known what was accepted, except that Left has all that was not.
func (s *Sender) Send(ctx context.Context, id string, all []rulestate.Notification) (Delivery, error) {
	// A label of a rule cannot name another tenant. The order of the steps is that of
	// upstream's notifier.
	alerts := make([]alert, 0, len(all))
	for _, n := range all {
		one := alert{n, n}
		ls := labels.NewBuilder(n.Labels)
		s.external.Range(func(l labels.Label) {
			if !n.Labels.Has(l.Name) {
				ls.Set(l.Name, l.Value)
			}
		})
		if id != tenant.Default {
			ls.Set(tenantLabel, id)
			one.GeneratorURL += "&" + tenantLabel + "=" + url.QueryEscape(id)
		}
		if !relabel.ProcessBuilder(ls, s.relabeling...) {
			continue
		}
		one.Labels = ls.Labels()
		alerts = append(alerts, one)
	}
	if len(alerts) == 0 {
		return Delivery{}, nil
	}
	d, err := s.to.deliver(ctx, alerts)
	d.Sent = len(alerts)
	return d, err
}
