package selfwrite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/base/telemetry"
)

const (
	// metadataInterval is the interval at which types and help texts are sent again.
	metadataInterval = time.Hour
	// maxPause bounds the time that a write takes from an invocation, in addition to a tenth of the
	// invocation's remaining time.
	maxPause = 2 * time.Second
	// minPause is the time below which no write is attempted.
	minPause = 50 * time.Millisecond
	// writeTimeout bounds a write that no request waits for.
	writeTimeout = 30 * time.Second
)

// Writer writes the metrics of one process. Methods of a nil Writer do nothing. It is safe for
// concurrent use; one write runs at a time.
type Writer struct {
	settings Settings
	target   Target
	api      *remote.API
	logger   *slog.Logger
	now      func() time.Time
	writes   *prometheus.CounterVec
	samples  prometheus.Gauge

	tried atomic.Int64 // ms since 1970 of the last attempt, or of the start

	turn         sync.Mutex // held while a write runs; guards the fields below
	written      time.Time  // time of the last successful write
	metadataSent time.Time  // time at which metadata was last sent
}

// New returns a writer of the metrics of g, or nil if s is not enabled. own is the write stage's
// handler for the URL Here; otherwise it may be nil. The first write is due after one interval. It
// counts in reg:
//
//	promlake_self_writes_total{result}   writes; success, error
//	promlake_self_samples                samples of the last write
func New(s Settings, g prometheus.Gatherer, reg prometheus.Registerer, own http.Handler, logger *slog.Logger, now func() time.Time) (*Writer, error) {
	if !s.Enabled() {
		return nil, nil
	}
	labels, err := s.labels()
	if err != nil {
		return nil, err
	}
	headers := &headers{tenant: s.Tenant, token: &token{now: now}}
	address := "http://" + Here + writePath
	if s.URL == Here {
		if own == nil {
			return nil, errors.New("self.url: " + Here + " is for processes that have a write stage")
		}
		headers.next = ask.Loopback(own)
	} else {
		var err error
		if address, err = s.target(); err != nil {
			return nil, err
		}
		network := http.DefaultTransport.(*http.Transport).Clone()
		// A function is frozen until its next write, and by then the other end has closed the
		// connection.
		network.DisableKeepAlives = true
		headers.next = network
		headers.token.from = auth.SecretOf(s.Token)
	}
	api, err := remote.NewAPI(address,
		remote.WithAPIPath(""),
		remote.WithAPIHTTPClient(&http.Client{Transport: headers}),
		remote.WithAPIBackoff(remote.BackoffConfig{Min: 50 * time.Millisecond, Max: 200 * time.Millisecond, MaxRetries: 1}))
	if err != nil {
		return nil, err
	}
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_self_"}
	w := &Writer{
		settings: s,
		target:   Target{Gatherer: g, Labels: labels, Keep: s.keeps},
		api:      api,
		logger:   logger,
		now:      now,
		writes:   f.Counters("writes_total", "Writes of the process's own metrics.", "result"),
		samples:  f.Gauge("samples", "Samples in the last write of the process's own metrics."),
	}
	w.tried.Store(now().UnixMilli())
	return w, nil
}

// MaybeWrite writes if the last write, or the start, is at least an interval ago. A write takes at
// most 2 s, and at most a tenth of the time until ctx's deadline. A failed write is logged and
// counted; the next one is due an interval later.
func (w *Writer) MaybeWrite(ctx context.Context) {
	if w == nil || !w.due() {
		return
	}
	pause := maxPause
	if end, ok := ctx.Deadline(); ok {
		pause = min(pause, time.Until(end)/10)
	}
	if pause < minPause || !w.turn.TryLock() {
		return
	}
	defer w.turn.Unlock()
	if w.due() {
		w.attempt(ctx, pause, false)
	}
}

func (w *Writer) due() bool {
	return w.now().UnixMilli()-w.tried.Load() >= w.settings.Interval.Milliseconds()
}

// Flush writes the last values and marks the end of all series, so that the values of an ended
// process do not look current. Nothing may be written afterwards. A failure is logged and counted.
func (w *Writer) Flush(ctx context.Context) {
	if w == nil {
		return
	}
	w.turn.Lock()
	defer w.turn.Unlock()
	w.attempt(ctx, writeTimeout, true)
}

// Run writes once per interval until ctx ends.
func (w *Writer) Run(ctx context.Context) {
	tick := time.NewTicker(w.settings.Interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.turn.Lock()
			w.attempt(ctx, writeTimeout, false)
			w.turn.Unlock()
		}
	}
}

// attempt writes within the timeout. The caller holds turn.
func (w *Writer) attempt(ctx context.Context, timeout time.Duration, last bool) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	now := w.now()
	w.tried.Store(now.UnixMilli())
	result := "success"
	if err := w.write(ctx, now, last); err != nil {
		result = "error"
		w.logger.Warn("cannot write own metrics", "err", err)
	}
	w.writes.WithLabelValues(result).Inc()
}

func (w *Writer) write(ctx context.Context, now time.Time, last bool) error {
	// New counters start with 0, so that their first value is an increase. With last, all series
	// end a millisecond after the last values.
	families, err := w.target.Gather()
	if err != nil {
		return err
	}
	req := &prompb.WriteRequest{}
	if err := w.target.Append(req, Zeros(families, w.written, now), 0); err != nil {
		return err
	}
	zeros := len(req.Timeseries)
	if err := w.target.Append(req, families, now.UnixMilli()); err != nil {
		return err
	}
	if last {
		for i := range req.Timeseries[zeros:] {
			ts := &req.Timeseries[zeros+i]
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: now.UnixMilli() + 1, Value: math.Float64frombits(value.StaleNaN)})
		}
	}
	if now.Sub(w.metadataSent) >= metadataInterval {
		for _, f := range families {
			req.Metadata = append(req.Metadata, Metadata(f))
		}
	}
	w.samples.Set(float64(len(req.Timeseries)))
	if _, err := w.api.Write(ctx, remote.WriteV1MessageType, req); err != nil {
		return fmt.Errorf("write to %s: %w", w.settings.URL, err)
	}
	w.written = now
	if req.Metadata != nil {
		w.metadataSent = now
	}
	return nil
}
