package cost

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
)

// Advice is what would make a load cheaper.
type Advice struct {
	Modes  []ModePrice `json:"modes"`  // cheapest first
	Advise []string    `json:"advise"` // sentences, the most useful first
}

// ModePrice is the monthly price of a load in a mode, with the load's samples per send and with
// RecommendedSend.
type ModePrice struct {
	Mode        Mode    `json:"mode"`
	Dollars     float64 `json:"dollars"`
	Recommended float64 `json:"dollars_with_recommended_sends"`
}

// RecommendedSend is the recommended max_samples_per_send: larger requests gain little, and it is
// far below every limit.
const RecommendedSend = 10_000

// prometheusSend is Prometheus' default of max_samples_per_send.
const prometheusSend = 2000

// enough is the least share of a bill that justifies advice.
const enough = 0.05

// Advise compares the modes for a load, and sizes of requests.
func Advise(l Load, p *Prices, m *Measured) (*Advice, error) {
	var (
		a    Advice
		errs []error
	)
	price := func(change func(*Load)) float64 {
		other := l
		change(&other)
		if other.Mode == Grouped {
			other.WriteThrough = HTTPAPI // the only entry of this mode
		}
		b, err := Estimate(other, p, m)
		if err != nil {
			errs = append(errs, err)
			return 0
		}
		return b.Dollars()
	}
	for _, mode := range Modes {
		as := price(func(l *Load) { l.Mode = mode })
		full := price(func(l *Load) {
			l.Mode, l.SamplesPerSend = mode, max(l.SamplesPerSend, RecommendedSend)
			l.SendDeadline = deadlineFor(l)
		})
		a.Modes = append(a.Modes, ModePrice{mode, as, min(as, full)})
	}
	usual := price(func(l *Load) { l.SamplesPerSend = min(l.SamplesPerSend, prometheusSend) })
	free := price(func(l *Load) { l.WriteThrough = FunctionURL })
	if len(errs) > 0 {
		return nil, errs[0]
	}
	now := a.Modes[slices.IndexFunc(a.Modes, func(x ModePrice) bool { return x.Mode == l.Mode })]
	slices.SortStableFunc(a.Modes, func(x, y ModePrice) int { return cmp.Compare(x.Recommended, y.Recommended) })
	a.sends(&l, now)
	if usual > now.Dollars*(1+enough) {
		a.Advise = append(a.Advise, fmt.Sprintf("Mind that the senders need max_samples_per_send: %.0f for that: with Prometheus' default of %d it would be $%.2f a month.",
			l.SamplesPerSend, prometheusSend, usual))
	}
	a.entry(&l, now, free)
	a.modes(&l, now)
	return &a, nil
}

// sends advises on the size of requests.
func (a *Advice) sends(l *Load, now ModePrice) {
	if now.Recommended > now.Dollars*(1-enough) {
		return
	}
	var set []string
	if l.SamplesPerSend < RecommendedSend {
		set = append(set, fmt.Sprintf("max_samples_per_send: %d", RecommendedSend))
	}
	if d := deadlineFor(l); d > l.SendDeadline {
		set = append(set, "batch_send_deadline: "+model.Duration(d).String())
	}
	a.Advise = append(a.Advise, fmt.Sprintf("Set %s in the senders' queue_config: it saves $%.2f of $%.2f a month in mode %s.",
		strings.Join(set, " and "), now.Dollars-now.Recommended, now.Dollars, l.Mode))
}

// entry advises on the entry to the ingest function. free is the price without charges for
// requests.
func (a *Advice) entry(l *Load, now ModePrice, free float64) {
	if l.WriteThrough != HTTPAPI || l.Mode == Grouped || free > now.Dollars*(1-enough) {
		return
	}
	a.Advise = append(a.Advise, fmt.Sprintf("Write through the ingest function's own URL (--write-through function-url): it saves $%.2f of $%.2f a month. "+
		"Set retry_on_http_429: true in the senders' queue_config then.", now.Dollars-free, now.Dollars))
}

// modes advises on the mode.
func (a *Advice) modes(l *Load, now ModePrice) {
	best := a.Modes[0]
	switch {
	case best.Mode == l.Mode || best.Recommended > now.Recommended*(1-enough):
		a.Advise = append(a.Advise, fmt.Sprintf("Stay with mode %s.", l.Mode))
	case best.Mode == Grouped:
		a.Advise = append(a.Advise, fmt.Sprintf("Instances that never idle are cheaper at this rate: mode grouped would cost $%.2f a month, or run promlake serve on a server of your own.", best.Recommended))
	default:
		a.Advise = append(a.Advise, fmt.Sprintf("Mode %s would cost $%.2f a month.", best.Mode, best.Recommended))
	}
}

// A Function URL sends this much of an answer at once, and the rest at this rate ("Response
// streaming for Lambda functions" in Lambda's developer guide).
const (
	atOnceBytes       = 6e6
	streamedPerSecond = 2e6
)

// queries adds the cost of queries. Every query counts as cold: nothing of the store is cached.
// Answers that the HTTP API cannot take are streamed through the function's URL.
func (w *sheet) queries() {
	n := w.QueriesPerDay * days
	size := w.SamplesPerQuery * w.m.QueryBytes.Value
	gets := w.m.QueryGets.Value + math.Ceil(size/w.m.QueryGetBytes.Value)
	requests := gets + w.m.QueryLists.Value
	k := w.query(w.SamplesPerQuery, requests)
	if streamed := w.BytesPerAnswer - atOnceBytes; streamed > 0 {
		k.wait += streamed / streamedPerSecond
		w.add(Query, "streamed", n*streamed/bytesOfGB, LambdaStreamed, "queries × bytes of an answer beyond 6 MB, through the function's URL")
	} else {
		w.add(Query, "requests", n*math.Ceil(max(1, w.BytesPerAnswer)/httpAPIBytes), HTTPAPIRequest, "queries × 512 KiB units of an answer")
	}
	w.function(Query, n, k, w.Memory.Query, "queries")
	w.add(Query, "GET", n*gets, S3Get, "queries × (manifests, meta.json, series tables, and 2 MiB pieces of samples)")
	w.add(Query, "LIST", n*w.m.QueryLists.Value, S3Put, "queries")
	w.add(Query, "answers", n*w.BytesPerAnswer/bytesOfGB, InternetOut, "queries × bytes of an answer, if they leave AWS")
}

// query is the work of a query, without its answer.
func (w *sheet) query(samples, requests float64) work {
	return work{
		cpu:  w.m.QueryFixedCPU.Value + samples*w.m.QueryCPU.Value/1e6 + requests*w.m.RequestCPU.Value,
		wait: w.m.QueryRounds.Value * w.m.S3Seconds.Value,
	}
}

// QueryTime returns how long a function of the default memory takes for a query that reads samples
// in requests to the store, and what this time and the invocation cost in DefaultRegion.
func QueryTime(samples, requests float64) (seconds, dollars float64) {
	w := &sheet{Load: DefaultLoad(), m: Figures()}
	k := w.query(samples, requests)
	w.function(Query, 1, k, w.Memory.Query, "")
	for _, l := range w.bill.Lines {
		price := Default().Price(l.Unit)
		dollars += price.Dollars(l.Quantity)
	}
	return w.seconds(k, w.Memory.Query), dollars
}

// Spent returns what queries that took seconds of functions of the default memory, and requests to
// read objects, cost in DefaultRegion.
func Spent(seconds float64, queries, requests int64) (dollars float64) {
	prices, memory := Default(), float64(DefaultLoad().Memory.Query)
	get, call, gigabyte := prices.Price(S3Get), prices.Price(LambdaRequest), prices.Price(LambdaArm64)
	return get.Dollars(float64(requests)) + call.Dollars(float64(queries)) + gigabyte.Dollars(seconds*memory/1024)
}

// logs adds the log lines of ticks and jobs, Lambda's lines for all invocations if enabled, and the
// alarms. Successful requests and batches write no lines of their own.
func (w *sheet) logs() {
	all, own := 0.0, map[Component]float64{Plan: w.m.TickLogBytes.Value, Compact: w.m.JobLogBytes.Value}
	var lines float64 // bytes
	for i := range w.bill.Lines {
		if l := &w.bill.Lines[i]; l.Unit == LambdaRequest {
			all += l.Quantity
			lines += l.Quantity * own[l.Component]
		}
	}
	w.add(Logs, "lines", lines/bytesOfGB, LogsIngested, "ticks and compaction jobs × bytes of their line")
	if w.SystemLogs == "info" {
		w.add(Logs, "Lambda's lines", all*w.m.SystemLogBytes.Value/bytesOfGB, LogsIngested, "invocations × bytes of their start and report")
		lines += all * w.m.SystemLogBytes.Value
	}
	w.add(Logs, "kept", lines/bytesOfGB*w.m.LogDays.Value/days, LogsStored, "lines × days kept ÷ 30")
	w.add(Logs, "metrics", w.m.Metrics.Value, Metric, "as deployed")
	w.add(Logs, "alarms", w.m.Alarms.Value, Alarm, "as deployed")
}
