package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"golang.org/x/sync/errgroup"

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

const (
	parallel  = 16 // messages to a receiver at once
	maxErrors = 10 // that one error names
)

var (
	// errRefused marks errors of messages that their receiver will never accept.
	errRefused = errors.New("refused")
	// errUnsent stands for messages that were not sent because of the error of another one.
	errUnsent = errors.New("not sent")
)

// direct sends each alert in a message of its own. Events of one alert are sent one after another,
// in their order. The first error that is not of one message ends the delivery: a receiver that
// does not answer takes the time of one request.
func direct(ctx context.Context, all []alert, send func(context.Context, alert) error) (d Delivery, err error) {
	var order []string
	events := map[string][]int{}
	for i, a := range all {
		key := string(a.Labels.Bytes(nil))
		if len(events[key]) == 0 {
			order = append(order, key)
		}
		events[key] = append(events[key], i)
	}
	results := make([]error, len(all)) // of each event
	for i := range results {
		results[i] = errUnsent
	}
	var failed atomic.Bool
	var g errgroup.Group
	g.SetLimit(parallel)
	for _, key := range order {
		g.Go(func() error {
			for _, i := range events[key] {
				if failed.Load() {
					return nil
				}
				if results[i] = send(ctx, all[i]); results[i] != nil && !errors.Is(results[i], errRefused) {
					failed.Store(true)
					return nil
				}
			}
			return nil
		})
	}
	_ = g.Wait() // the errors are in results
	var errs, wrongs []error
	for i, err := range results {
		switch {
		case errors.Is(err, errRefused):
			wrongs = append(wrongs, err)
		case err == nil:
		default:
			d.Left = append(d.Left, all[i].from)
			if !errors.Is(err, errUnsent) {
				errs = append(errs, err)
			}
		}
	}
	d.Refused = Few(wrongs)
	return d, Few(errs)
}

// Few joins the first errors, and the number of the others, for a log line.
func Few(errs []error) error {
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more errors", more))
	}
	return errors.Join(errs...)
}
