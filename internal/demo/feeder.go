package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"

	"github.com/promlake/promlake/internal/demo/node"
	"github.com/promlake/promlake/internal/scrape"
)

const (
	// metadataInterval is the interval at which types and help texts are sent again.
	metadataInterval = time.Minute
	// welcomeRounds is the number of rounds before the examples are printed: a rate needs two
	// samples.
	welcomeRounds = 2
	// firstPause bounds the pause before the second round, so that the welcome is printed soon.
	firstPause = time.Second
	// requestTimeout bounds one attempt to deliver a round.
	requestTimeout = 30 * time.Second
)

// Feeder sends one round of samples per interval over remote_write 1.0.
type Feeder struct {
	interval time.Duration
	url      string
	token    string // "": requests need none
	targets  []scrape.Target
	api      *remote.API
	out      io.Writer
	logger   *slog.Logger
	now      func() time.Time

	lastMetadata time.Time // owned by round
}

// New returns a feeder that writes to the Promlake at url, with the token if it is not "": the
// machine's metrics with job "node" and those of own with job "promlake". When the data can be
// queried, it prints a welcome to out. If the machine's metrics cannot be read, it logs that and
// sends only own.
func New(s Settings, url, token string, own prometheus.Gatherer, out io.Writer, logger *slog.Logger, now func() time.Time) (*Feeder, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("check demo settings: %w", err)
	}
	api, err := remote.NewAPI(url,
		remote.WithAPIHTTPClient(&http.Client{Timeout: requestTimeout, Transport: bearer{token, http.DefaultTransport}}),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: 100 * time.Millisecond, Max: 2 * time.Second, MaxRetries: 5}))
	if err != nil {
		return nil, fmt.Errorf("make remote_write client: %w", err)
	}
	instance, err := s.instance()
	if err != nil {
		return nil, err
	}
	f := &Feeder{interval: s.Interval, url: url, token: token, api: api, out: out, logger: logger, now: now}
	if machine, err := machineGatherer(s.ProcPath, logger, now); err != nil {
		logger.Warn("demo feeds no metrics of this machine", "err", err)
	} else {
		f.targets = append(f.targets, newTarget("node", instance, machine))
	}
	_, hostPort, _ := strings.Cut(url, "://")
	f.targets = append(f.targets, newTarget("promlake", hostPort, own))
	return f, nil
}

func newTarget(job, instance string, g prometheus.Gatherer) scrape.Target {
	return scrape.Target{Gatherer: g, Labels: map[string]string{model.JobLabel: job, model.InstanceLabel: instance}}
}

func machineGatherer(procPath string, logger *slog.Logger, now func() time.Time) (prometheus.Gatherer, error) {
	c, err := node.New(procPath, logger, now)
	if err != nil {
		return nil, err
	}
	reg := prometheus.NewRegistry()
	if err := reg.Register(c); err != nil {
		return nil, fmt.Errorf("register the machine's metrics: %w", err)
	}
	return reg, nil
}

// Run sends rounds until ctx ends. A round that cannot be delivered is logged and dropped, because
// the next one has newer values.
func (f *Feeder) Run(ctx context.Context) {
	delivered := 0
	for ctx.Err() == nil {
		pause := f.interval
		switch err := f.round(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.logger.Warn("demo could not deliver samples", "err", err)
		default:
			delivered++
			if delivered == welcomeRounds {
				f.welcome()
			}
			if delivered < welcomeRounds {
				pause = min(pause, firstPause)
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// round gathers all targets once and sends the result.
func (f *Feeder) round(ctx context.Context) error {
	now := f.now()
	withMetadata := now.Sub(f.lastMetadata) >= metadataInterval
	req := &prompb.WriteRequest{}
	var errs []error
	for _, t := range f.targets {
		if err := collect(t, req, now.UnixMilli(), withMetadata); err != nil {
			errs = append(errs, err)
		}
	}
	if _, err := f.api.Write(ctx, remote.WriteV1MessageType, req); err != nil {
		return errors.Join(append(errs, fmt.Errorf("write to %s: %w", f.url, err))...)
	}
	if withMetadata {
		f.lastMetadata = now
	}
	return errors.Join(errs...)
}
