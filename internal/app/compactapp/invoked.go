package compactapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/sqsqueue"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/store/queue"
)

// Path is the path of requests for a cycle (POST).
const Path = "/-/compact"

// invoked compacts on demand: on a request, on a schedule, or on messages that hold jobs. It
// implements process.Stage, process.Scheduled and process.Consumer.
type invoked struct {
	compact *compact.Stage
	metrics prometheus.Gatherer
	queue   queue.Sender // takes the jobs of a tick; nil: they are done at once

	ctx    context.Context // ends when the stage drains
	cancel context.CancelFunc
	cycles sync.Mutex // held while a cycle runs
}

// OnRequest returns the builder of a stage that runs one cycle for each request to Path and answers
// with its totals. A request that arrives while a cycle runs is refused, because that cycle does
// its work. In a function, the stage also runs on schedules and executes jobs that arrive as
// messages. The queue receives no request before the first tick.
func OnRequest(s Settings, w Workers) process.Builder {
	return func(ctx context.Context, p process.Parts) (process.Stage, error) {
		c, err := newStage(s, p)
		if err != nil {
			return nil, err
		}
		i := &invoked{compact: c, metrics: p.Registry}
		if w.QueueURL != "" {
			if i.queue, err = sqsqueue.Open(ctx, w.QueueURL, sqsqueue.Metrics(p.Registry)); err != nil {
				return nil, fmt.Errorf("start compaction: %w", err)
			}
		}
		i.ctx, i.cancel = context.WithCancel(context.Background())
		return i, nil
	}
}

// Routes implements process.Stage.
func (s *invoked) Routes() []process.Route {
	return []process.Route{{Pattern: "POST " + Path, Name: Path, Access: auth.Operate, Handler: s}}
}

// ServeHTTP answers 200 with the Totals of the cycle, 409 while another cycle runs, and 500 with
// the error and the Totals of the cycle's finished part. A cycle continues when its client
// disconnects.
func (s *invoked) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !s.cycles.TryLock() {
		answer(w, http.StatusConflict, reply{Status: "error", Error: "a cycle is running"})
		return
	}
	defer s.cycles.Unlock()
	done, err := s.cycle()
	if err != nil {
		answer(w, http.StatusInternalServerError, reply{Status: "error", Error: err.Error(), Data: &done})
		return
	}
	answer(w, http.StatusOK, reply{Status: "success", Data: &done})
}

// cycle runs one cycle, whose failures the stage logs.
func (s *invoked) cycle() (Totals, error) {
	before, err := readTotals(s.metrics)
	if err != nil {
		return Totals{}, err
	}
	_, err = s.compact.Cycle(s.ctx)
	after, merr := readTotals(s.metrics)
	return Totals{
		after.Jobs - before.Jobs, after.Conflicts - before.Conflicts, after.Failed - before.Failed,
		after.SamplesRead - before.SamplesRead, after.SamplesWritten - before.SamplesWritten, after.SamplesDeleted - before.SamplesDeleted,
		after.BytesRead - before.BytesRead, after.BytesWritten - before.BytesWritten,
		after.ObjectsRemoved - before.ObjectsRemoved, after.BytesRemoved - before.BytesRemoved,
	}, errors.Join(err, merr)
}

// reply has the form of the Prometheus API's answers.
type reply struct {
	Status string  `json:"status"`
	Error  string  `json:"error,omitempty"`
	Data   *Totals `json:"data,omitempty"`
}

func answer(w http.ResponseWriter, status int, body reply) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(body)
}

// Drain implements process.Stage: a cycle under way is dropped and its request answered.
func (s *invoked) Drain(context.Context) error {
	s.cancel()
	return nil
}

// Close implements process.Stage.
func (s *invoked) Close() error {
	s.cancel()
	return nil
}
