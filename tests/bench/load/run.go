package load

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/proc"
)

// Run sends the fleet's traffic and reports its costs. now is the clock. Failed requests are
// counted in the report and are no error. If ctx ends early, or the server's process has ended, Run
// returns the report so far and an error.
func Run(ctx context.Context, f *fleet.Fleet, settings Settings, now func() time.Time) (Report, error) {
	s, err := settings.complete(f.Len(), now())
	if err != nil {
		return Report{}, err
	}
	plan, err := planBatches(f, s.Protocol, s.Batch, s.Concurrency)
	if err != nil {
		return Report{}, err
	}
	client := newClient(s.Concurrency)
	defer client.CloseIdleConnections()

	before, err := measure(s.PID, now)
	if err != nil {
		return Report{}, err
	}
	total, err := sendAll(ctx, f, s, plan, client, now)
	if err != nil {
		return Report{}, err
	}
	own, err := measure(0, now)
	if err != nil {
		return Report{}, err
	}
	cost := costs{elapsed: own.at.Sub(before.at), own: own.own - before.own}
	if !sleep(ctx, s.Settle) {
		return newReport(s, f, total, cost), fmt.Errorf("send load: %w", context.Cause(ctx))
	}
	after, err := measure(s.PID, now)
	if err == nil && s.PID > 0 {
		cost.server = &Server{CPUSeconds: (after.server.CPU - before.server.CPU).Seconds(), PeakRSSBytes: after.server.PeakRSS}
	}
	return newReport(s, f, total, cost), err
}

// sendAll runs one sender for each part of the plan until the duration is over and every request is
// answered.
func sendAll(ctx context.Context, f *fleet.Fleet, s Settings, plan [][]batch, client *http.Client, now func() time.Time) (*tally, error) {
	stop, cancel := context.WithTimeout(ctx, s.Duration)
	defer cancel()
	var (
		pace    = &pacer{rate: s.Rate, begin: now(), now: now}
		headers = requestHeaders(s.Protocol, s.Headers)
		tallies = make([]*tally, len(plan))
		all     errgroup.Group
	)
	for i, batches := range plan {
		one := &sender{
			settings: s, fleet: f, batches: batches, churn: churn{share: s.Churn, offset: float64(i) / float64(len(plan))},
			client: client, headers: headers.Clone(), pace: pace, now: now,
		}
		tallies[i] = &one.tally
		all.Go(func() error { return one.run(ctx, stop) })
	}
	err := all.Wait()
	return merge(tallies), err
}

// newClient returns a client with one lasting connection for each sender, straight to the server.
func newClient(connections int) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			MaxIdleConns:        connections,
			MaxIdleConnsPerHost: connections,
			MaxConnsPerHost:     connections,
			DisableCompression:  true,
			WriteBufferSize:     64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// reading is the values of all clocks at one moment.
type reading struct {
	at     time.Time
	own    time.Duration // processor time of this process
	server proc.Usage    // zero without a pid
}

func measure(pid int, now func() time.Time) (r reading, err error) {
	r.at = now()
	if r.own, err = proc.Self(); err != nil {
		return r, err
	}
	if pid > 0 {
		if r.server, err = proc.Read(pid); err != nil {
			return r, fmt.Errorf("measure server: %w", err)
		}
	}
	return r, nil
}
