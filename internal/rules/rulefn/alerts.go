package rulefn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

const (
	stateLabel = "alertstate"

	// ResolvedRetention is how long a resolved alert is sent again, as upstream's constant of this
	// name.
	ResolvedRetention = 15 * time.Minute
)

// alerting is what decides about the alerts of a rule.
type alerting struct {
	name                string
	labels              labels.Labels
	hold, keepFiringFor time.Duration
	limit               int // of alerts that are pending or firing; 0: none
}

// advance returns the alerts of a rule after an evaluation at a time, ascending by labels, and the
// samples that it writes at sampled. before are the alerts after the former evaluation, found those
// that the expression has now. It neither keeps nor changes its arguments. The rules are those of
// upstream's AlertingRule.Eval. After an error, which says that there are too many, there are no
// alerts any more.
func (r *alerting) advance(before, found []rulestate.Alert, at, sampled time.Time) (after []rulestate.Alert, samples promql.Vector, err error) {
	active := make(map[string]rulestate.Alert, len(before)+len(found))
	for _, a := range before {
		active[string(a.Labels.Bytes(nil))] = a
	}
	holds := make(map[string]bool, len(found))
	for _, a := range found {
		key := string(a.Labels.Bytes(nil))
		holds[key] = true
		if old, ok := active[key]; ok && old.State != rulestate.Resolved {
			old.Value, old.Annotations = a.Value, a.Annotations
			a = old
		}
		active[key] = a
	}
	all := slices.SortedFunc(maps.Values(active), func(a, b rulestate.Alert) int { return labels.Compare(a.Labels, b.Labels) })
	activeNow := 0
	for _, a := range all {
		if holds[string(a.Labels.Bytes(nil))] {
			a.KeepFiringSince = time.Time{}
		} else {
			keep := false
			if a.State == rulestate.Firing && r.keepFiringFor > 0 {
				if a.KeepFiringSince.IsZero() {
					a.KeepFiringSince = at
				}
				keep = at.Sub(a.KeepFiringSince) < r.keepFiringFor
			}
			if !keep {
				forget := a.State == rulestate.Pending || !a.ResolvedAt.IsZero() && at.Sub(a.ResolvedAt) > ResolvedRetention
				if a.State != rulestate.Resolved {
					a.State, a.ResolvedAt = rulestate.Resolved, at
				}
				if !forget {
					after = append(after, a)
				}
				continue
			}
		}
		activeNow++
		if a.State == rulestate.Pending && at.Sub(a.ActiveAt) >= r.hold {
			a.State, a.FiredAt = rulestate.Firing, at
		}
		if a.State == rulestate.Firing && at.Sub(a.ActiveAt) < r.hold { // the rule has changed
			a.State, a.FiredAt, a.LastSentAt, a.KeepFiringSince = rulestate.Pending, time.Time{}, time.Time{}, time.Time{}
		}
		after = append(after, a)
		samples = append(samples, r.samples(a, sampled)...)
	}
	if r.limit > 0 && activeNow > r.limit {
		return nil, nil, fmt.Errorf("exceeded limit of %d with %d alerts", r.limit, activeNow)
	}
	return after, samples, nil
}

// samples are those that an active alert writes.
func (r *alerting) samples(a rulestate.Alert, at time.Time) promql.Vector {
	lb := labels.NewBuilder(r.labels)
	a.Labels.Range(func(l labels.Label) { lb.Set(l.Name, l.Value) })
	lb.Set(labels.AlertName, r.name)
	lb.Set(model.MetricNameLabel, ruleeval.ForStateMetric)
	forState := promql.Sample{Metric: lb.Labels(), T: timestamp.FromTime(at), F: float64(a.ActiveAt.Unix())}
	lb.Set(model.MetricNameLabel, ruleeval.AlertsMetric)
	lb.Set(stateLabel, a.State)
	return promql.Vector{{Metric: lb.Labels(), T: timestamp.FromTime(at), F: 1}, forState}
}

// due returns the notifications that are to be sent at a time, and notes them in the alerts, which
// it changes. The rules are those of upstream's AlertingRule.sendAlerts.
func due(alerts []rulestate.Alert, at time.Time, interval, resend time.Duration, link string) (out []rulestate.Notification) {
	for i := range alerts {
		a := &alerts[i]
		if a.State == rulestate.Pending || !a.ResolvedAt.After(a.LastSentAt) && !a.LastSentAt.Add(resend).Before(at) {
			continue
		}
		a.LastSentAt = at
		a.ValidUntil = at.Add(4 * max(interval, resend)) // two evaluations or deliveries may fail
		n := rulestate.Notification{Labels: a.Labels, Annotations: a.Annotations, StartsAt: a.FiredAt, EndsAt: a.ValidUntil, GeneratorURL: link}
		if !a.ResolvedAt.IsZero() {
			n.EndsAt = a.ResolvedAt
		}
		out = append(out, n)
	}
	return out
}

// restore continues the "for" times of the alerts of a rule that another program has evaluated,
// such as a server, as upstream's groups do after a restart: from the samples of ALERTS_FOR_STATE.
// It is for the first evaluation of a group, before anything is written.
func (e *evaluation) restore(ctx context.Context, rule *rules.AlertingRule) {
	o := e.group.opts
	bare := map[string]labels.Labels{}
	rule.ForEachActiveAlert(func(a *rules.Alert) {
		b := labels.NewBuilder(a.Labels)
		o.ExternalLabels.Range(func(l labels.Label) {
			if !a.Labels.Has(l.Name) {
				b.Set(l.Name, l.Value)
			}
		})
		if written := b.Labels(); !labels.Equal(written, a.Labels) {
			bare[written.String()] = a.Labels
		}
	})
	g := rules.NewGroup(rules.GroupOptions{
		Name: e.group.group.Name, File: e.group.namespace, Interval: e.group.Interval(), Rules: []rules.Rule{rule},
		Opts: &rules.ManagerOptions{
			Context: ctx, Queryable: past{e.data.Past, e.note, bare}, OutageTolerance: o.OutageTolerance, ForGracePeriod: o.GracePeriod,
			Metrics: o.metrics, Logger: o.Logger,
		},
	})
	g.RestoreForState(e.at)
}

// past is a storage whose errors are noted, because upstream only logs them.
type past struct {
	storage.Queryable

	note func(error)
	bare map[string]labels.Labels // of alerts, by their labels with the external ones
}

// Querier implements storage.Queryable.
func (p past) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := p.Queryable.Querier(mint, maxt)
	if err != nil {
		return nil, p.failed(err)
	}
	return pastQuerier{q, p}, nil
}

// failed notes an error of the storage as upstream's engine would return it, and returns it.
func (p past) failed(err error) error {
	p.note(fmt.Errorf("%w: %w", promql.ErrStorage{Err: err}, err))
	return err
}

type pastQuerier struct {
	storage.Querier

	past past
}

// Select implements storage.Querier. A Prometheus that writes to the store adds its external labels
// to series that lack them. So a series with those of an alert and the external ones is there with
// those of the alert, too. Of two equal series the last one counts for upstream: the one that has
// these labels in the store.
func (q pastQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	set := q.Querier.Select(ctx, sorted, hints, ms...)
	var stored, renamed []storage.Series
	for set.Next() {
		s := set.At()
		stored = append(stored, s)
		without := labels.NewBuilder(s.Labels()).Del(model.MetricNameLabel).Labels()
		if ls, ok := q.past.bare[without.String()]; ok {
			renamed = append(renamed, renamedSeries{s, ls})
		}
	}
	if err := set.Err(); err != nil {
		return storage.ErrSeriesSet(q.past.failed(err))
	}
	return ruleeval.NewSeriesSet(append(renamed, stored...))
}

// renamedSeries is a series with other labels.
type renamedSeries struct {
	storage.Series

	labels labels.Labels
}

// Labels implements storage.Labels.
func (r renamedSeries) Labels() labels.Labels { return r.labels }
