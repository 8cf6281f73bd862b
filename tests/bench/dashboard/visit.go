package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/server"
)

const (
	panels = 30
	// connections is how many requests a browser has on their way at a time.
	connections = 6
	// pause is longer than queries share a listing of the store.
	pause = 1500 * time.Millisecond
	// points is how many steps a panel has, if they are not shorter than interval.
	points = 240
)

// Texts are the queries of panels; each has an instance.
var Texts = []string{
	`sum by (mode) (rate(node_cpu_seconds_total{instance=%q}[5m]))`,
	`1 - avg(rate(node_cpu_seconds_total{instance=%q,mode="idle"}[5m]))`,
	`node_load1{instance=%q}`,
	`node_memory_MemAvailable_bytes{instance=%[1]q} / node_memory_MemTotal_bytes{instance=%[1]q}`,
	`rate(node_network_receive_bytes_total{instance=%q}[5m])`,
	`rate(node_network_transmit_bytes_total{instance=%q}[5m])`,
	`rate(node_disk_read_bytes_total{instance=%q}[5m])`,
	`rate(node_disk_written_bytes_total{instance=%q}[5m])`,
	`node_filesystem_avail_bytes{instance=%[1]q} / node_filesystem_size_bytes{instance=%[1]q}`,
	`max_over_time(node_load1{instance=%q}[5m])`,
}

// requests are calls of the store by kind.
type requests struct {
	Gets  float64 `json:"gets"`
	Lists float64 `json:"lists"`
}

func (r requests) minus(o requests) requests { return requests{r.Gets - o.Gets, r.Lists - o.Lists} }

// result is what the dashboard asks of a store with one time range.
type result struct {
	Store     string        `json:"store"`
	Range     time.Duration `json:"range_ns"`
	Opened    requests      `json:"opened"`
	Refreshed requests      `json:"refreshed"` // after the next scrape of all hosts
}

// visit starts a server, opens the dashboard with each range, and refreshes it once.
func (v *visit) visit(ctx context.Context, spec server.Spec, dir string, ranges []time.Duration) (results []result, err error) {
	p, err := server.Start(ctx, spec, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	for _, span := range ranges {
		r := result{Range: span}
		if r.Opened, err = v.show(ctx, p, span); err != nil {
			return nil, err
		}
		if err := v.scrape(ctx, p, 1); err != nil {
			return nil, err
		}
		if r.Refreshed, err = v.show(ctx, p, span); err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// show sends the queries of all panels, and returns the store's calls meanwhile.
func (v *visit) show(ctx context.Context, p *server.Process, span time.Duration) (requests, error) {
	select {
	case <-time.After(pause):
	case <-ctx.Done():
		return requests{}, context.Cause(ctx)
	}
	before, err := count(ctx, p)
	if err != nil {
		return requests{}, err
	}
	all, queries := errgroup.WithContext(ctx)
	all.SetLimit(connections)
	for i := range panels {
		all.Go(func() error {
			path := v.panel(i, span)
			if _, err := peer.Get(queries, p.URL(path)); err != nil {
				return fmt.Errorf("ask %s: %w", path, err)
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return requests{}, err
	}
	after, err := count(ctx, p)
	return after.minus(before), err
}

// panel is the request of a panel.
func (v *visit) panel(i int, span time.Duration) string {
	number := v.hosts.Len() / v.hosts.PerHost()
	end, step := v.now().Unix(), max(interval, span/points)
	q := url.Values{
		"query": {fmt.Sprintf(Texts[i%len(Texts)], fmt.Sprintf("host_%d:9100", i/len(Texts)%number))},
		"start": {strconv.FormatInt(end-int64(span.Seconds()), 10)}, "end": {strconv.FormatInt(end, 10)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	}
	return "/api/v1/query_range?" + q.Encode()
}

// count reads the server's counters of calls of the store that read.
func count(ctx context.Context, p *server.Process) (r requests, err error) {
	const name = "promlake_objstore_requests_total"
	all, err := peer.Families(ctx, p.URL("/metrics"), name)
	if err != nil {
		return r, err
	}
	for _, m := range all[name].GetMetric() {
		for _, l := range m.GetLabel() {
			switch {
			case l.GetName() == "op" && l.GetValue() == "get":
				r.Gets += m.GetCounter().GetValue()
			case l.GetName() == "op" && l.GetValue() == "list":
				r.Lists += m.GetCounter().GetValue()
			}
		}
	}
	return r, nil
}
