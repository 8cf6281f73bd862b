package rules

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/promlake/promlake/tests/bench/answer"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

const (
	// looked is the number of targets whose series are counted at the end.
	looked = 5
	// recomputed is the number of rules of each kind whose last results are computed again.
	recomputed = 3
	// aside is how much older than an evaluation the last scrape of its target must be, in seconds,
	// so that the evaluation has certainly seen it.
	aside = 3
	// own are the series that a server adds to each scrape, such as up.
	own = 5
)

// examine reads what a server has stored until end, and notes what is missing.
func (w *work) examine(ctx context.Context, p *server.Process, r *result, end time.Time) error {
	e := &examiner{ctx: ctx, server: p, at: end}
	w.scraped(e, r)
	if w.Rules > 0 {
		w.evaluated(e, r)
		w.recompute(e, r)
	}
	return e.err
}

// scraped examines scrapes.
func (w *work) scraped(e *examiner, r *result) {
	span := fmt.Sprintf("[%ds]", int(r.Seconds)+10)
	match := fmt.Sprintf(`up{job=%q}`, job)
	stored := e.number(`sum(count_over_time(` + match + span + `))`)
	r.ScrapesFailed = int(stored - e.number(`sum(sum_over_time(`+match+span+`))`))
	if r.ScrapesFailed > 0 {
		r.fail("%d scrapes failed", r.ScrapesFailed)
	}
	// those of the last seconds may be under way
	if due := r.Scrapes - w.Targets; int(stored) < due {
		r.fail("%d scrapes are stored of %d that were made", int(stored), r.Scrapes)
	}
	if least := stored * float64(w.Series+own); r.Samples < least-float64(w.Targets*(w.Series+own)) {
		r.fail("%.0f samples were appended in %.0f scrapes of %d series", r.Samples, stored, w.Series)
	}
	for i := range min(looked, w.Targets) {
		host := i * (w.Targets - 1) / max(1, looked-1)
		instance := w.hosts.Labels(host * w.hosts.PerHost()).Get("instance")
		n := e.number(fmt.Sprintf(`count({job=%q,instance=%q,rule=""})`, job, instance))
		if int(n) != w.Series+own {
			r.fail("%s has %.0f series, want %d", instance, n, w.Series+own)
		}
	}
}

// evaluated examines the results of rules.
func (w *work) evaluated(e *examiner, r *result) {
	r.all = e.ask(`{__name__=~"bench:.+"}`, e.at)
	exact := map[string]bool{}
	for _, g := range w.groups {
		for _, x := range g.Rules {
			r.ResultsDue += x.results
			if x.exact {
				exact[x.Record] = true
			}
		}
	}
	r.Results = len(r.all)
	if r.Results != r.ResultsDue {
		r.fail("there are %d series of results, want %d", r.Results, r.ResultsDue)
	}
	r.exact = answer.Answer{}
	for name := range exact {
		for k, points := range e.ask(name, e.at) {
			for _, v := range points {
				r.exact[k] = map[int64]float64{0: v} // the servers are asked at different times
			}
		}
	}
	r.Alerts = len(e.ask("ALERTS", e.at))
	span := time.Duration(r.Seconds*float64(time.Second)) - w.start()
	var lags []float64
	for _, points := range e.ask(fmt.Sprintf("%s[%ds]", lag, int(span.Seconds())), e.at) {
		for _, v := range points {
			lags = append(lags, v)
		}
	}
	if len(lags) == 0 {
		r.fail("no rule has recorded a lag")
		return
	}
	r.LagMedian, _ = table.Median(lags)
	r.LagMax = slices.Max(lags)
}

// recompute compares the last results of some rules of each kind with the answers to their
// expressions at the time of the evaluation.
func (w *work) recompute(e *examiner, r *result) {
	done, seen := map[string]int{}, map[string]bool{}
	for _, g := range w.groups {
		for _, x := range g.Rules {
			if x.Record == "" || x.reads == "" || done[x.Record] == recomputed || e.err != nil {
				continue
			}
			seen[x.Record] = true
			if ok := r.same(e, x); ok {
				done[x.Record]++
				r.Recomputed++
			}
		}
	}
	for name := range seen {
		if done[name] == 0 {
			r.fail("no result of %s could be computed again", name)
		}
	}
}

// same compares the last result of a rule with the answer to its expression. It returns false if
// they cannot be compared, because a scrape may have been under way at the evaluation.
func (r *result) same(e *examiner, x rule) bool {
	span := e.ask(fmt.Sprintf(`%s{rule=%q}[5m]`, x.Record, x.Labels["rule"]), e.at)
	last := int64(math.MinInt64)
	for _, points := range span {
		for t := range points {
			last = max(last, t)
		}
	}
	if last == math.MinInt64 {
		return false
	}
	at := time.UnixMilli(last)
	if newest := e.numberAt(`max(timestamp(`+x.reads+`))`, at); float64(last)/1000-newest < aside {
		return false
	}
	var recorded, again []float64
	for _, points := range span {
		if v, ok := points[last]; ok {
			recorded = append(recorded, v)
		}
	}
	for _, points := range e.ask(x.Expr, at) {
		for _, v := range points {
			again = append(again, v)
		}
	}
	// labels of both differ in the name and the number of the rule
	slices.Sort(recorded)
	slices.Sort(again)
	if e.err == nil && !slices.EqualFunc(recorded, again, func(a, b float64) bool { return answer.Difference(a, b) <= answer.MaxDifference }) {
		r.fail("rule %s recorded %v at %s, where %s is %v", x.Labels["rule"], recorded, at.UTC().Format(time.RFC3339Nano), x.Expr, again)
	}
	return true
}

// examiner asks a server. After an error its answers are empty.
type examiner struct {
	ctx    context.Context
	server *server.Process
	at     time.Time
	err    error
}

// ask returns the answer to an instant query.
func (e *examiner) ask(query string, at time.Time) answer.Answer {
	if e.err != nil {
		return nil
	}
	v := url.Values{"query": {query}, "time": {strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)}}
	body, err := peer.Get(e.ctx, e.server.URL("/api/v1/query?"+v.Encode()))
	if err != nil {
		e.err = fmt.Errorf("ask %s: %w", query, err)
		return nil
	}
	a, err := answer.Parse(body)
	if err != nil {
		e.err = fmt.Errorf("ask %s: %w", query, err)
	}
	return a
}

// number returns the value of the only series of an answer, or 0 without one.
func (e *examiner) number(query string) float64 { return e.numberAt(query, e.at) }

func (e *examiner) numberAt(query string, at time.Time) float64 {
	for _, points := range e.ask(query, at) {
		for _, v := range points {
			return v
		}
	}
	return 0
}

// agree compares the results of rules of two servers, and notes differences on the first one.
func agree(results []*result) {
	if len(results) < 2 || results[0].all == nil || results[1].all == nil {
		return
	}
	a, b := results[0], results[1]
	if c := answer.Compare(a.all, b.all); c.Missing > 0 || c.Extra > 0 {
		a.fail("%d series of results of %s are missing, and %d are extra", c.Missing, b.Server, c.Extra)
	}
	if c := answer.Compare(a.exact, b.exact); c.Missing+c.Extra+c.Apart > 0 || c.Difference > 0 {
		a.fail("results over constant series are not those of %s: %d series missing, %d extra, values up to %.3g apart", b.Server, c.Missing, c.Extra, c.Difference)
	}
}
