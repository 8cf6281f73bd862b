package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/promlake/promlake/tests/bench/server"
)

// trip is what a question costs a Promlake over a bucket as the first one after a start.
type trip struct {
	Requests int                       `json:"requests"`
	Trips    int                       `json:"round_trips"` // those of the longest delay
	Took     map[time.Duration]float64 `json:"s"`           // by the delay of a request
}

// delays are how much longer each request to the bucket takes, in rising order.
func delays() []time.Duration { return []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond} }

// overBucket copies Promlake's store into a bucket, and asks every question there with each delay
// as the first one after a start.
func (f *Flags) overBucket(ctx context.Context, targets []target, qs []Question) (trips []trip, err error) {
	i := slices.IndexFunc(targets, func(t target) bool { return t.name == server.Promlake })
	if i < 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "bench-bucket-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := f.Start(ctx, filepath.Join(dir, "gateway"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Stop()) }()
	if err := g.Fill(ctx, f.ServerBin, server.Store(targets[i].dir)); err != nil {
		return nil, err
	}
	spec := targets[i].ask.Over(g.URL()).With(further(server.Promlake)...).With(f.PromlakeArgs...)
	for _, q := range qs {
		t := trip{Took: map[time.Duration]float64{}}
		for _, d := range delays() {
			p, err := server.Start(ctx, spec, dir)
			if err != nil {
				return nil, err
			}
			g.Delay(d)
			g.Count() // the start does not count
			var c cell
			err = c.first(ctx, p, q)
			t.Requests, t.Trips = g.Count()
			g.Delay(0)
			if err = errors.Join(err, p.Stop()); err != nil {
				return nil, err
			}
			if c.Error != "" {
				return nil, fmt.Errorf("ask %s over a bucket: %s", q.name(), c.Error)
			}
			t.Took[d] = c.Cold
		}
		note("over a bucket: %s: %s", q.name(), t)
		trips = append(trips, t)
	}
	return trips, nil
}

func (t trip) String() string {
	s := fmt.Sprintf("%d requests in %d round trips", t.Requests, t.Trips)
	for _, d := range delays() {
		s += fmt.Sprintf(", %.0f ms with %d ms a request", 1000*t.Took[d], d.Milliseconds())
	}
	return s
}

// tripRows is the table of trips.
func (r *report) tripRows() [][]string {
	head := []string{"Promlake over a bucket, cold", "requests", "round trips"}
	for _, d := range delays() {
		head = append(head, fmt.Sprintf("ms, %d ms a request", d.Milliseconds()))
	}
	rows := [][]string{head}
	for i, t := range r.Trips {
		row := []string{r.Questions[i].name(), fmt.Sprint(t.Requests), fmt.Sprint(t.Trips)}
		for _, d := range delays() {
			row = append(row, fmt.Sprintf("%.0f", 1000*t.Took[d]))
		}
		rows = append(rows, row)
	}
	return rows
}
