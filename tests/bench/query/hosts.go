package query

import (
	"context"
	"fmt"
	"time"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
)

const (
	// hostsBatch is the number of samples in a request, each of another series, as agents send them.
	hostsBatch = 2000
	// hostsShift moves the scrapes away from the steps of the queries: versions of Prometheus differ
	// in whether a range includes a sample at its very beginning.
	hostsShift = 7 * time.Millisecond
)

// feedHosts sends the scrapes of all hosts.
func feedHosts(ctx context.Context, url string, s scale) (samples, series int64, err error) {
	c, err := capture.Open("")
	if err != nil {
		return 0, 0, err
	}
	f, err := fleet.New(c, s.Hosts)
	if err != nil {
		return 0, 0, err
	}
	set := load.Settings{URL: url, Batch: hostsBatch, Rounds: s.Samples, Interval: s.interval(), Start: s.begin().Add(hostsShift), Duration: time.Hour}
	if s.Set == live { // request by request, as one agent sends them
		set.Rate, set.Concurrency, set.Duration = float64(f.Len())/s.interval().Seconds()*s.Pace, 1, liveLongest
	}
	r, err := load.Run(ctx, f, set, time.Now)
	if err != nil {
		return 0, 0, err
	}
	if r.RequestsFailed > 0 {
		return 0, 0, fmt.Errorf("%d requests failed: %v", r.RequestsFailed, r.Messages)
	}
	return r.Samples, int64(f.Len()), nil
}

// hostQuestions returns small queries, as dashboards and rules have them: of one series to 16 of
// each host, over 8 hours by the minute, or over all of the data if that is shorter.
func (s scale) hostQuestions() []Question {
	const one = `node_cpu_seconds_total{instance="host_3:9100",cpu="0",mode="user"}`
	steps := min(maxSteps, int(s.end().Sub(s.begin())/step))
	ranged := func(text string) Question {
		return Question{Text: text, Start: s.end().Add(-time.Duration(steps-1) * step), End: s.end()}
	}
	// the subquery has a value at each whole minute, see hostsShift
	sub := ranged(`max_over_time(sum(rate(node_cpu_seconds_total{mode="idle"}[5m]))[30m:1m])`)
	sub.Start, sub.End = sub.Start.Add(-59*time.Second), sub.End.Add(-59*time.Second)
	top := ranged(`topk(5, avg_over_time(node_cpu_seconds_total{mode="user"}[1h]))`)
	top.Ties = true
	return []Question{
		ranged(`sum by (mode) (rate(node_cpu_seconds_total[5m]))`),
		ranged(`sum(max_over_time(node_load1[5m]))`),
		ranged(`sum(deriv(node_load1[15m]))`),
		sub,
		ranged(`1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[5m]))`),
		ranged(`node_memory_MemAvailable_bytes / on (instance) node_memory_MemTotal_bytes`),
		top,
		ranged(`sum by (cpu) (irate(node_cpu_seconds_total{mode=~"user|system|iowait"}[2m]))`),
		ranged(one),
		ranged(`rate(` + one + `[5m])`),
		ranged(`absent(node_cpu_seconds_total{instance="host_none:9100"})`),
	}
}
