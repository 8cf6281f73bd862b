package imports

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// shapes are queries of a selector whose answers do not depend on the order of series: sums of
// fractions do, so sums are of whole numbers only.
var shapes = []string{
	"%s", "%s", "rate(%s[5m])", "rate(%s[20m])", "increase(%s[1h])", "irate(%s[10m])", "delta(%s[1h])", "deriv(%s[30m])", "resets(%s[3h])", "changes(%s[90m])",
	"avg_over_time(%s[10m])", "min_over_time(%s[1h])", "max_over_time(%s[45m])", "sum_over_time(%s[13m])", "count_over_time(%s[20m])", "last_over_time(%s[2h])",
	"stddev_over_time(%s[30m])", "quantile_over_time(0.9, %s[40m])", "present_over_time(%s[4m])", "predict_linear(%s[1h], 3600)", "%s offset 3h", "timestamp(%s)", "%s > 100",
	"max by (instance) (%s)", "min without (instance) (rate(%s[10m]))", "count by (role) (%s)", "quantile by (role) (0.5, rate(%s[15m]))", "sum by (instance) (floor(%s))",
	"sum(count_over_time(%s[1h]))", "max_over_time(rate(%s[5m])[1h:5m])", "histogram_quantile(0.9, %s)", "histogram_quantile(0.5, rate(%s[20m]))", "histogram_count(increase(%s[1h]))",
}

// question returns a random query about some series of the source.
func (s *source) question(r *rand.Rand) promblocktest.Question {
	i := r.IntN(len(s.series))
	if r.IntN(6) == 0 { // the native histograms are few
		i = len(s.series) - 1 - r.IntN(len(s.series)-s.replay.Hosts()*s.replay.PerHost())
	}
	var pairs []labels.Label
	s.series[i].Range(func(l labels.Label) {
		if l.Name != model.MetricNameLabel {
			pairs = append(pairs, l)
		}
	})
	selector := s.series[i].Get(model.MetricNameLabel) + "{"
	for range r.IntN(3) {
		l := pairs[r.IntN(len(pairs))]
		switch r.IntN(4) {
		case 0:
			selector += fmt.Sprintf("%s!=%q,", l.Name, l.Value)
		case 1:
			selector += fmt.Sprintf("%s=~%q,", l.Name, regexp.QuoteMeta(l.Value[:len(l.Value)/2])+".*")
		default:
			selector += fmt.Sprintf("%s=%q,", l.Name, l.Value)
		}
	}
	first, last := s.time(0, 0), s.time(0, s.rounds)
	hour := time.Hour.Milliseconds()
	q := promblocktest.Question{Text: fmt.Sprintf(shapes[r.IntN(len(shapes))], selector+"}")}
	q.From = first - hour/2 + r.Int64N(last-first+hour)
	q.To = q.From
	if r.IntN(3) > 0 {
		q.To += r.Int64N(6 * hour)
		q.Step = time.Duration(15+r.IntN(1800)) * time.Second
	}
	return q
}

// asked counts the questions whose answers were compared.
type asked struct{ Questions, Answers, Different int }

// ask sends random queries to Promlake over the store, and to upstream's engine over the source. It
// tells every difference to report. Answers are compared bit by bit.
func (s *source) ask(ctx context.Context, store objstore.Store, seed uint64, n int, report func(string)) (a asked, err error) {
	blocks, end, err := s.open()
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, end()) }()
	ctx = tenant.With(ctx, tenant.Default)
	var stages []*query.Stage // with the defaults, and evaluating everything in statements that it can
	for _, set := range []query.Settings{{}, {MinPushedSamples: -1}} {
		st, err := query.New(set, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
		if err != nil {
			return a, err
		}
		defer func() { err = errors.Join(err, st.Close()) }()
		stages = append(stages, st)
	}
	set := stages[0].Settings()
	upstream := promql.NewEngine(promql.EngineOpts{
		Logger: slog.New(slog.DiscardHandler), MaxSamples: set.MaxSamples, Timeout: set.Timeout, LookbackDelta: set.LookbackDelta,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true, EnableNegativeOffset: true, Parser: parser.NewParser(query.ParserOptions()),
	})
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		q, st := s.question(r), stages[r.IntN(len(stages))]
		want, err := q.Ask(ctx, upstream, blocks)
		if err != nil {
			return a, fmt.Errorf("ask upstream's engine %s: %w", q, err)
		}
		got, err := q.Ask(ctx, st.Engine(), st)
		if err != nil {
			return a, fmt.Errorf("ask Promlake %s: %w", q, err)
		}
		a.Questions++
		if want != "" {
			a.Answers++
		}
		if got != want {
			a.Different++
			report(fmt.Sprintf("%s\n  Promlake: %.300s\n  upstream: %.300s", q, got, want))
		}
	}
	return a, nil
}
