package rulefn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/timestamp"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Result describes an evaluation.
type Result struct {
	Notifications []rulestate.Notification // that are due now
	Failures      []error                  // of rules; the others have results nevertheless
}

// Data is what an evaluation reads and writes.
type Data struct {
	// Query answers expressions. Whether they see what earlier rules of the group have appended
	// depends on it.
	Query rules.QueryFunc
	// Past has the samples of programs that evaluated the group without a state. nil: there are
	// none.
	Past storage.Queryable
	// To takes samples and stale markers, in one transaction for each rule.
	To storage.Appendable
}

// Eval evaluates the rules of the group, one after another, at a time that Last returned, and
// returns the state afterwards, without an outbox. It does not change before. At the first
// evaluation of a group, its alerts continue their "for" times from the past.
//
// An error says that the evaluation must be repeated, and that what was appended does not count:
// ctx ended, or a query failed for a reason that passes, also one of a template, whose error would
// else become the text of a label or an annotation.
func (g *Group) Eval(ctx context.Context, before *rulestate.Group, at time.Time, data Data) (*rulestate.Group, *Result, error) {
	begin := g.opts.Now()
	states, _, gone := g.adopt(before)
	for i := range states {
		states[i].Error = ""
	}
	after := &rulestate.Group{Version: rulestate.Version, Namespace: g.namespace, Name: g.group.Name, Evaluated: at, Rules: states}
	res := &Result{}
	e := &evaluation{group: g, first: before.Evaluated.IsZero(), at: at, sampled: at.Add(-g.offset), data: data, result: res}
	for i := range g.rules {
		r := &g.rules[i]
		ruleBegin := g.opts.Now()
		err := e.rule(ctx, r, &states[i])
		states[i].Measured = g.opts.since(ruleBegin)
		if ctx.Err() != nil {
			return nil, nil, fmt.Errorf("evaluate group %q of namespace %q at %s: %w", g.group.Name, g.namespace, at.Format(time.RFC3339Nano), context.Cause(ctx))
		}
		if e.passing == nil && err == nil {
			continue
		}
		where := fmt.Sprintf("evaluate rule %d, %q, of group %q of namespace %q at %s", i+1, r.name(), g.group.Name, g.namespace, at.Format(time.RFC3339Nano))
		if e.passing != nil {
			return nil, nil, fmt.Errorf("%s: %w", where, e.passing)
		}
		states[i].Fail(err)
		res.Failures = append(res.Failures, fmt.Errorf("%s: %w", where, err))
	}
	if err := e.end(ctx, gone); err != nil {
		return nil, nil, err
	}
	after.Measured = g.opts.since(begin)
	return after, res, nil
}

// since measures an evaluation that began at a time of the clock, and ends now.
func (o *Options) since(begin time.Time) rulestate.Measured {
	return rulestate.Measured{LastEvaluation: begin.Round(0).UTC(), EvaluationTime: o.Now().Sub(begin).Seconds()}
}

// adopt returns the states of the group's rules, which of them have one already, and the series of
// rules that are gone. Rules are found by name and labels, those with equal ones in their order, as
// upstream's Group.CopyState does.
func (g *Group) adopt(before *rulestate.Group) (states []rulestate.Rule, known []bool, gone []labels.Labels) {
	places := map[string][]int{}
	for i, r := range before.Rules {
		places[r.Key] = append(places[r.Key], i)
	}
	states, known = make([]rulestate.Rule, len(g.rules)), make([]bool, len(g.rules))
	for i := range g.rules {
		r := &g.rules[i]
		states[i].Key = r.key
		if at := places[r.key]; len(at) > 0 {
			states[i] = before.Rules[at[0]]
			if r.Alert == "" {
				states[i].Alerts = nil
			}
			known[i], places[r.key] = true, at[1:]
		}
	}
	for _, r := range before.Rules {
		if len(places[r.Key]) > 0 {
			gone = append(gone, r.Series...) // also of its twins, as upstream has it
		}
	}
	return states, known, gone
}

// evaluation is one evaluation of a group.
type evaluation struct {
	group   *Group
	first   bool // of the group
	at      time.Time
	sampled time.Time // of queries and samples
	data    Data
	result  *Result
	series  int   // written so far
	passing error // of the last query that failed for a reason that passes
}

// query implements rules.QueryFunc.
func (e *evaluation) query(ctx context.Context, expr string, t time.Time) (promql.Vector, error) {
	v, err := e.data.Query(ctx, expr, t)
	e.note(err)
	return v, err
}

// note remembers an error of the data if it passes.
func (e *evaluation) note(err error) {
	if err != nil && e.group.opts.Retry(err) {
		e.passing = err
	}
}

// rule evaluates a rule and changes its state. After an error the state is as before, except that a
// rule with too many alerts has none.
func (e *evaluation) rule(ctx context.Context, r *rule, state *rulestate.Rule) error {
	var vector promql.Vector
	alerts := state.Alerts
	var err error
	if r.Alert != "" {
		vector, alerts, err = e.alerts(ctx, r, state)
	} else {
		vector, err = rules.NewRecordingRule(r.Record, r.expr, r.labels).Eval(ctx, e.group.offset, e.at, e.query, nil, e.group.group.Limit)
	}
	if err != nil {
		return err
	}
	if n, limit := e.series+len(vector), e.group.opts.MaxSeries; n > limit {
		return fmt.Errorf("the rules of the group write %d series or more, the limit is %d (--ruler.max-series-per-group): divide the group, or aggregate more", n, limit)
	}
	if r.Alert != "" {
		link := e.group.opts.Link(r.expr.String())
		e.result.Notifications = append(e.result.Notifications, due(alerts, e.at, e.group.Interval(), e.group.opts.ResendDelay, link)...)
	}
	written, refused, err := e.write(ctx, vector, state.Series)
	if refused != nil {
		state.Fail(refused)
	}
	if err != nil {
		return err
	}
	state.Series, state.Alerts = written, alerts
	e.series += len(written)
	return nil
}

// alerts evaluates an alerting rule: upstream's rule has the alerts of this moment with their
// labels and annotations, and advance what becomes of them.
func (e *evaluation) alerts(ctx context.Context, r *rule, state *rulestate.Rule) (promql.Vector, []rulestate.Alert, error) {
	o := e.group.opts
	now := rules.NewAlertingRule(r.Alert, r.expr, time.Duration(r.For), 0, r.labels, labels.FromMap(r.Annotations), o.ExternalLabels, o.ExternalURL.String(), false, o.Logger)
	guarded := ruletemplate.Begin(ctx, &ruletemplate.Evaluation{Rules: []rules.Rule{now}, At: e.at, ExternalLabels: o.ExternalLabels, Link: o.ExternalURL.String(), URL: o.ExternalURL})
	if _, err := now.Eval(guarded, e.group.offset, e.at, o.Templates.Around(e.query), o.ExternalURL, 0); err != nil {
		return nil, nil, err
	}
	if e.first && e.data.Past != nil && now.ActiveAlertsCount() > 0 && r.For > 0 && time.Duration(r.For) >= o.GracePeriod {
		e.restore(ctx, now)
	}
	var found []rulestate.Alert
	now.ForEachActiveAlert(func(a *rules.Alert) {
		found = append(found, rulestate.Alert{Labels: a.Labels, Annotations: a.Annotations, State: rulestate.Pending, Value: rulestate.Value(a.Value), ActiveAt: a.ActiveAt})
	})
	machine := alerting{name: r.Alert, labels: r.labels, hold: time.Duration(r.For), keepFiringFor: time.Duration(r.KeepFiringFor), limit: e.group.group.Limit}
	after, vector, err := machine.advance(state.Alerts, found, e.at, e.sampled)
	if err != nil {
		state.Alerts = nil
	}
	return vector, after, err
}

// write appends the result of a rule, and stale markers for series that it does not write any more.
// It returns the series of the result, without those that were refused because another rule wrote
// them, and why the last one of these was.
func (e *evaluation) write(ctx context.Context, vector promql.Vector, before []labels.Labels) (written []labels.Labels, refused, err error) {
	app := e.data.To.Appender(ctx)
	app.SetOptions(&storage.AppendOptions{DiscardOutOfOrder: true})
	written = make([]labels.Labels, 0, len(vector))
	has := make(map[string]bool, len(vector))
	var buf []byte
	for _, s := range vector {
		var err error
		if s.H != nil {
			_, err = app.AppendHistogram(0, s.Metric, s.T, nil, s.H)
		} else {
			_, err = app.Append(0, s.Metric, s.T, s.F)
		}
		if err != nil {
			e.discarded(s.Metric, err)
			refused = err
			continue
		}
		buf = s.Metric.Bytes(buf)
		has[string(buf)] = true
		written = append(written, s.Metric)
	}
	for _, ls := range before {
		if buf = ls.Bytes(buf); !has[string(buf)] {
			e.mark(app, ls)
		}
	}
	slices.SortFunc(written, labels.Compare)
	return written, refused, app.Commit()
}

// end marks the series of rules that are gone.
func (e *evaluation) end(ctx context.Context, gone []labels.Labels) error {
	if len(gone) == 0 {
		return nil
	}
	app := e.data.To.Appender(ctx)
	app.SetOptions(&storage.AppendOptions{DiscardOutOfOrder: true})
	for _, ls := range gone {
		e.mark(app, ls)
	}
	return app.Commit()
}

// mark appends a stale marker. It is refused if another rule has written the series.
func (e *evaluation) mark(app storage.Appender, ls labels.Labels) {
	if _, err := app.Append(0, ls, timestamp.FromTime(e.sampled), math.Float64frombits(value.StaleNaN)); err != nil {
		e.discarded(ls, err)
	}
}

// discarded notes a sample that the appender refused. It is no failure if another rule was first.
func (e *evaluation) discarded(ls labels.Labels, err error) {
	for _, known := range []error{storage.ErrOutOfOrderSample, storage.ErrTooOldSample, storage.ErrDuplicateSampleForTimestamp} {
		if errors.Is(err, known) {
			e.group.opts.Logger.Debug("a result of a rule was discarded", "series", ls.String(), "err", err)
			return
		}
	}
	e.result.Failures = append(e.result.Failures, fmt.Errorf("append %s of group %q of namespace %q: %w", ls, e.group.group.Name, e.group.namespace, err))
}
