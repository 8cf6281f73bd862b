package query

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
)

const (
	mixClients = 8
	mixWindow  = time.Hour        // of each query, anywhere in the main data
	mixStep    = 15 * time.Second // so that an answer has 240 points per series
	mixSeed    = 11
)

// mix is the measurement of a server under the queries of many small panels at once.
type mix struct {
	Queries int     `json:"queries"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_ms_per_query"` // the whole process's
	Median  float64 `json:"median_ms"`
	P99     float64 `json:"p99_ms"`
}

// perSecond is the number of answers in a second.
func (m mix) perSecond() float64 { return float64(m.Queries) / m.Seconds }

// panel returns a random query of 1 to 16 series over a random window of the main data, as a panel
// of a dashboard sends it.
func (s scale) panel(rng *rand.Rand) Question {
	if s.Set == live {
		return s.livePanel(rng)
	}
	host := fmt.Sprintf("host-%03d:9100", rng.IntN(max(1, s.Series/perInstance)))
	n := rng.IntN(min(perInstance, s.Series))
	few := rng.IntN(max(1, min(perInstance, s.Series/10/len(bounds))))
	text := [...]string{
		fmt.Sprintf(`m{instance=%q,n="%d"}`, host, n),
		fmt.Sprintf(`rate(m{instance=%q,n="%d"}[5m])`, host, n),
		fmt.Sprintf(`sum by (g) (rate(m{instance=%q,n=~"%d.?"}[5m]))`, host, n%10),
		fmt.Sprintf(`max_over_time(a{instance="host-000:9100",n=~"%d.?"}[5m])`, n%10),
		fmt.Sprintf(`histogram_quantile(0.9, sum by (le) (rate(h_bucket{instance="host-000:9100",n="%d"}[5m])))`, few),
		fmt.Sprintf(`sum(rate(a{instance="host-000:9100",n=~"%d.?"}[5m])) / sum(rate(b{instance="host-000:9100",n=~"%[1]d.?"}[5m]))`, n%10),
	}[rng.IntN(6)]
	room := max(0, s.end().Sub(start)-mixWindow)
	from := start.Add(time.Duration(rng.Int64N(int64(room) + 1))).Truncate(mixStep)
	return Question{Text: text, Start: from, End: from.Add(mixWindow), Step: mixStep}
}

// runMix starts one server after the other and measures each under the same queries for a time.
func runMix(ctx context.Context, targets []target, s scale, took time.Duration) ([]mix, error) {
	var all []mix
	for _, t := range targets {
		p, err := server.Start(ctx, t.ask, t.dir)
		if err != nil {
			return nil, err
		}
		m, err := warmMix(ctx, p, s, took)
		if err = errors.Join(err, p.Stop()); err != nil {
			return nil, fmt.Errorf("send the mix to %s: %w", t.name, err)
		}
		all = append(all, m)
	}
	return all, nil
}

// warmMix measures a server under the mix, after a tenth of the time that warms it up.
func warmMix(ctx context.Context, p *server.Process, s scale, took time.Duration) (mix, error) {
	if _, err := hold(ctx, p, s, took/10); err != nil {
		return mix{}, err
	}
	return hold(ctx, p, s, took)
}

// hold sends the mix to one server for a time and measures it.
func hold(ctx context.Context, p *server.Process, s scale, took time.Duration) (mix, error) {
	before, err := proc.Read(p.PID())
	if err != nil {
		return mix{}, err
	}
	var mu sync.Mutex
	var times []float64
	begin := time.Now()
	clients, ctx := errgroup.WithContext(ctx)
	for c := range mixClients {
		clients.Go(func() error {
			rng := rand.New(rand.NewPCG(mixSeed, uint64(c)))
			for n := 0; n == 0 || time.Since(begin) < took; n++ { // on a busy machine, too
				q, asked := s.panel(rng), time.Now()
				if _, err := peer.Get(ctx, p.URL(q.path())); err != nil {
					return fmt.Errorf("%s: %w", q.Text, err)
				}
				mu.Lock()
				times = append(times, 1000*time.Since(asked).Seconds())
				mu.Unlock()
			}
			return nil
		})
	}
	if err := clients.Wait(); err != nil {
		return mix{}, err
	}
	m := mix{Queries: len(times), Seconds: time.Since(begin).Seconds()}
	after, err := proc.Read(p.PID())
	if err != nil {
		return mix{}, err
	}
	slices.Sort(times)
	m.CPU = 1000 * (after.CPU - before.CPU).Seconds() / float64(len(times))
	m.Median, m.P99 = times[len(times)/2], times[len(times)*99/100]
	return m, nil
}
