package growth

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// queries is the cost of the small queries of one pass over the chosen hosts, or of several.
type queries struct {
	Number int     `json:"number"`
	CPU    float64 `json:"cpu_ms_per_query"` // the server's
	Median float64 `json:"median_ms"`
}

// asked is what the panels of a dashboard cost when they are opened, and each time they refresh.
type asked struct {
	First queries `json:"first"`
	Again queries `json:"again"`
}

const (
	// seed makes all servers answer the same queries.
	seed   = 7
	passes = 50 // how often the hosts are asked again
)

// ask sends a range query over the time of the load for each of n hosts, and then the same queries
// again.
func ask(ctx context.Context, p *server.Process, n int, hosts *fleet.Fleet, loaded load.Report) (a asked, err error) {
	rng := rand.New(rand.NewPCG(seed, 0))
	total := hosts.Len() / hosts.PerHost()
	paths := make([]string, n)
	for i := range paths {
		// the hosts in the second half of a fleet are not replaced in a short load
		paths[i] = query(total-1-rng.IntN(max(1, total/2)), loaded)
	}
	if a.First, err = send(ctx, p, paths); err != nil {
		return a, err
	}
	a.Again, err = send(ctx, p, slices.Repeat(paths, passes))
	return a, err
}

// send sends requests one after the other and measures them.
func send(ctx context.Context, p *server.Process, paths []string) (q queries, err error) {
	before, err := proc.Read(p.PID())
	if err != nil {
		return q, err
	}
	var took []float64
	for _, path := range paths {
		begin := time.Now()
		body, err := peer.Get(ctx, p.URL(path))
		if err != nil {
			return q, fmt.Errorf("ask %s: %w", path, err)
		}
		took = append(took, float64(time.Since(begin))/float64(time.Millisecond))
		if err := answered(body); err != nil {
			return q, fmt.Errorf("ask %s: %w", path, err)
		}
	}
	after, err := proc.Read(p.PID())
	if err != nil {
		return q, err
	}
	q.Number = len(took)
	q.Median, _ = table.Median(took)
	q.CPU = float64(after.CPU-before.CPU) / float64(time.Millisecond) / float64(q.Number)
	return q, nil
}

// query returns the request of a panel with the processors of one host.
func query(host int, loaded load.Report) string {
	v := url.Values{
		"query":   {fmt.Sprintf(`sum by (mode) (rate(node_cpu_seconds_total{instance="host_%d:9100"}[5m]))`, host)},
		"start":   {strconv.FormatInt(loaded.FirstSampleMS/1000, 10)},
		"end":     {strconv.FormatInt(loaded.LastSampleMS/1000, 10)},
		"step":    {strconv.Itoa(int(interval.Seconds()))},
		"nocache": {"1"}, // VictoriaMetrics keeps answers
	}
	return "/api/v1/query_range?" + v.Encode()
}

// answered returns an error for an answer without series.
func answered(body []byte) error {
	var a struct {
		Data struct {
			Result []json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return fmt.Errorf("parse answer: %w", err)
	}
	if len(a.Data.Result) == 0 {
		return fmt.Errorf("the answer has no series: %.200s", body)
	}
	return nil
}
