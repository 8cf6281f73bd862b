package query

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/promlake/promlake/tests/bench/answer"
	"github.com/promlake/promlake/tests/bench/peer"
	"github.com/promlake/promlake/tests/bench/proc"
	"github.com/promlake/promlake/tests/bench/server"
)

// A turn is as many requests as fit in turnTime, so that short ones are measured well, but at least
// one.
const (
	turnTime = 100 * time.Millisecond
	turnMost = 50
)

// cell holds the measurements of one question on one server.
type cell struct {
	Cold    float64 `json:"cold_s,omitempty"` // the first request after a start
	ColdCPU float64 `json:"cold_cpu_s,omitempty"`
	// of the process by then, its start included
	ColdRSS uint64    `json:"cold_peak_rss_bytes,omitempty"`
	Warm    []float64 `json:"warm_s,omitempty"`
	CPU     float64   `json:"warm_cpu_s,omitempty"` // per request, the whole process's
	Bytes   int       `json:"answer_bytes"`
	Error   string    `json:"error,omitempty"`
	Apart   string    `json:"apart,omitempty"` // how the answer is not that of a peer

	asked  int           // so far
	answer answer.Answer // of the first variant
	spent  time.Duration // processor time in all turns
}

// cells are indexed by question and target.
type cells [][]cell

func newCells(questions, targets int) cells {
	c := make(cells, questions)
	for i := range c {
		c[i] = make([]cell, targets)
	}
	return c
}

// cold measures every question on every server as the first one after a start.
func (c cells) cold(ctx context.Context, targets []target, qs []Question) error {
	for i, q := range qs {
		for k, t := range targets {
			p, err := server.Start(ctx, t.ask, t.dir)
			if err != nil {
				return err
			}
			err = c[i][k].first(ctx, p, q)
			if err = errors.Join(err, p.Stop()); err != nil {
				return err
			}
			note("cold %s: %s: %.4f s", t.name, q.name(), c[i][k].Cold)
		}
	}
	return nil
}

// first measures the question as the first one after a start: always the same variant.
func (c *cell) first(ctx context.Context, p *server.Process, q Question) error {
	before, err := proc.Read(p.PID())
	if err != nil {
		return err
	}
	c.Cold = c.ask(ctx, p, q.variant(0))
	after, err := proc.Read(p.PID())
	c.ColdCPU, c.ColdRSS = (after.CPU - before.CPU).Seconds(), after.PeakRSS
	return errors.Join(err, ctx.Err())
}

// ask sends the question once and returns the seconds until the end of the answer. It stores an
// error in the cell.
func (c *cell) ask(ctx context.Context, p *server.Process, q Question) float64 {
	begin := time.Now()
	body, err := peer.Get(ctx, p.URL(q.variant(c.asked).path()))
	took := time.Since(begin).Seconds()
	c.asked++
	if err == nil {
		c.Bytes = len(body)
		if c.answer == nil {
			c.answer, err = answer.Parse(body)
		}
	}
	if err != nil && c.Error == "" {
		c.Error = err.Error()
	}
	return took
}

// warm starts all servers and measures them warm. It returns each server's peak resident set.
func (c cells) warm(ctx context.Context, targets []target, qs []Question, rounds int) (rss []uint64, err error) {
	running := make([]*server.Process, len(targets))
	defer func() {
		for _, p := range running {
			if p != nil {
				err = errors.Join(err, p.Stop())
			}
		}
	}()
	for k, t := range targets {
		if running[k], err = server.Start(ctx, t.ask, t.dir); err != nil {
			return nil, err
		}
	}
	if err := c.rounds(ctx, running, qs, rounds); err != nil {
		return nil, err
	}
	for _, p := range running {
		u, err := proc.Read(p.PID())
		if err != nil {
			return nil, err
		}
		rss = append(rss, u.PeakRSS)
	}
	return rss, nil
}

// rounds sends every question to each running server once, and then measures the given number of
// rounds of all questions, in which the servers take turns.
func (c cells) rounds(ctx context.Context, running []*server.Process, qs []Question, rounds int) error {
	for round := range rounds + 1 {
		for i, q := range qs {
			for turn := range running {
				k := (turn + round) % len(running)
				if err := c[i][k].turn(ctx, running[k], q, round > 0); err != nil {
					return err
				}
			}
		}
		note("round %d of %d", round, rounds)
	}
	c.average()
	return nil
}

// turn repeats the question for the time of a turn, or sends each of its variants; the times count
// from the second round on. It skips a question that failed.
func (c *cell) turn(ctx context.Context, p *server.Process, q Question, counts bool) error {
	if c.Error != "" {
		return ctx.Err()
	}
	before, err := proc.Read(p.PID())
	if err != nil {
		return err
	}
	more := func(n int, took time.Duration) bool { return n == 0 || n < turnMost && took < turnTime }
	if q.Each {
		more = func(n int, _ time.Duration) bool { return n < len(q.Variants) }
	}
	for begin, n := time.Now(), 0; more(n, time.Since(begin)); n++ {
		if took := c.ask(ctx, p, q); counts {
			c.Warm = append(c.Warm, took)
		}
	}
	after, err := proc.Read(p.PID())
	if counts {
		c.spent += after.CPU - before.CPU
	}
	return errors.Join(err, ctx.Err())
}

func (c cells) average() {
	for i := range c {
		for k := range c[i] {
			if n := len(c[i][k].Warm); n > 0 {
				c[i][k].CPU = c[i][k].spent.Seconds() / float64(n)
			}
		}
	}
}

// check compares Promlake's answers with those of its peers.
func (c cells) check(targets []target, qs []Question) {
	at := map[string]int{}
	for k, t := range targets {
		at[t.name] = k
	}
	for i, q := range qs {
		for _, own := range []string{server.Promlake, uncompacted} {
			k, ok := at[own]
			if !ok || c[i][k].Error != "" {
				continue
			}
			var err error
			if p, ok := at[server.Prometheus]; ok && c[i][p].Error == "" {
				err = equal(c[i][k].answer, c[i][p].answer)
			}
			if v, ok := at[server.VictoriaMetrics]; ok && c[i][v].Error == "" {
				err = errors.Join(err, alike(q, c[i][k].answer, c[i][v].answer))
			}
			if err != nil {
				c[i][k].Apart = err.Error()
			}
		}
	}
}

func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
