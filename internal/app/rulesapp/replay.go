package rulesapp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/rules/ruleeval"
)

// Replay asks when an alert would have fired.
type Replay struct {
	Source
	Alert    string
	Tenant   string
	Start    time.Time
	End      time.Time
	AsOf     time.Time // read the data as it stood then; zero: as it is now
	Recorded bool      // read the results of recording rules from the store instead of computing them

	MemoryBytes int64 // for the results of recording rules
}

// Episode is one time for which an alert was active, from the first evaluation at which its
// expression had a result to the first one at which it was over.
type Episode struct {
	Group       string        `json:"group"`
	File        string        `json:"file"`
	Labels      labels.Labels `json:"labels"`
	Annotations labels.Labels `json:"annotations"` // at the last evaluation
	Value       float64       `json:"-"`           // when it fired, or at the first evaluation
	Since       time.Time     `json:"pendingSince"`
	Firing      time.Time     `json:"firingAt,omitzero"`   // zero: it never fired
	Resolved    time.Time     `json:"resolvedAt,omitzero"` // zero: it was active at the end
}

// Replayed is what Replay found out.
type Replayed struct {
	Episodes    []Episode // in the order of Since
	Evaluations int64
	Note        string // of evaluations that failed; "": none did
}

// Replay evaluates the alerts of a name from Start to End, with no alert active before.
func (l *Lake) Replay(ctx context.Context, r Replay, now time.Time) (*Replayed, error) {
	if err := check(r.Start, r.End); err != nil {
		return nil, err
	}
	rs, err := l.load(r.Source)
	if err != nil {
		return nil, err
	}
	targets := rs.Alerting(r.Alert)
	if len(targets) == 0 {
		var names []string
		for _, a := range rs.Alerting("") {
			names = append(names, a.Name())
		}
		slices.Sort(names)
		return nil, fmt.Errorf("replay: no alert %s in %s: it has %s", r.Alert, strings.Join(r.Files, ", "), cmp.Or(strings.Join(slices.Compact(names), ", "), "none"))
	}
	if ctx, err = reader(ctx, r.Tenant, now); err != nil {
		return nil, err
	}
	if !r.AsOf.IsZero() {
		ctx = request.WithAsOf(ctx, r.AsOf)
	}
	producers := append(rs.Recording(), rs.Alerting("")...)
	if r.Recorded {
		producers = nil
	}
	out := &Replayed{}
	watching := watch{open: map[string]*Episode{}}
	e, err := ruleeval.New(ruleeval.Options{
		Rules: rs, Targets: targets, Producers: producers, Data: l.Query, Engine: l.Query.Engine(), Fatal: fatal, Anew: true,
		Start: r.Start, End: r.End, MemoryBytes: r.MemoryBytes, MemoryAdvice: "raise --rules.max-memory, or ask for less time",
		Alert: func(rule *ruleeval.Rule, state *rules.AlertingRule, at time.Time) {
			if slices.Contains(targets, rule) {
				out.Evaluations++
				watching.see(rule, state, at)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	whole, err := e.Whole(ctx)
	if err == nil {
		_, err = e.Window(ctx, whole, r.Start.Add(-maxOffset).UnixMilli(), r.End.UnixMilli()+1)
	}
	if err != nil {
		return nil, err
	}
	for _, one := range watching.open {
		watching.done = append(watching.done, *one)
	}
	slices.SortFunc(watching.done, func(a, b Episode) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.File, b.File), cmp.Compare(a.Group, b.Group), labels.Compare(a.Labels, b.Labels))
	})
	out.Episodes, out.Note = watching.done, noted(e)
	return out, nil
}

// maxOffset bounds how far the samples of an evaluation are before it.
const maxOffset = 24 * time.Hour

// watch follows alerts from evaluation to evaluation.
type watch struct {
	open map[string]*Episode
	done []Episode
}

// see notes what is active after an evaluation.
func (w *watch) see(rule *ruleeval.Rule, state *rules.AlertingRule, at time.Time) {
	file, group := rule.Group()
	prefix := file + "\xff" + group + "\xff" + rule.ID() + "\xff"
	active := map[string]bool{}
	state.ForEachActiveAlert(func(a *rules.Alert) {
		if !a.ResolvedAt.IsZero() {
			return
		}
		key := prefix + a.Labels.String()
		active[key] = true
		one := w.open[key]
		if one == nil {
			one = &Episode{Group: group, File: file, Labels: a.Labels.Copy(), Since: a.ActiveAt, Value: a.Value}
			w.open[key] = one
		}
		one.Annotations = a.Annotations.Copy()
		if a.State == rules.StateFiring && one.Firing.IsZero() {
			one.Firing, one.Value = a.FiredAt, a.Value
		}
	})
	for key, one := range w.open {
		if strings.HasPrefix(key, prefix) && !active[key] {
			one.Resolved = at
			w.done = append(w.done, *one)
			delete(w.open, key)
		}
	}
}
