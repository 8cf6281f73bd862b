package rulefn

import (
	"context"
	"fmt"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/rules/ruleeval"
)

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
