package selfwrite

import (
	"context"
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

	"github.com/promlake/promlake/internal/scrape"
)

const (
	// metadataInterval is how often types and help texts are sent again.
	metadataInterval = time.Hour
	// maxPause is the longest time that a write takes of an invocation, which also gives it a tenth
	// of its own at most.
	maxPause = 2 * time.Second
	// minPause is the time below which a write is not tried.
	minPause = 50 * time.Millisecond
	// writeTimeout bounds a write that nobody waits for.
	writeTimeout = 30 * time.Second
)

// Writer writes the metrics of one process. A nil Writer does nothing. It is safe for concurrent
// use; one write runs at a time.
type Writer struct {
	settings Settings
	target   scrape.Target
	api      *remote.API
	logger   *slog.Logger
	now      func() time.Time
	met      metrics

	tried atomic.Int64 // ms since 1970 of the last write that was tried, or of the start

	turn    sync.Mutex // held while a write runs; owns what follows
	written time.Time  // of the last write that succeeded
	told    time.Time  // when metadata was last sent
}

// metrics are the writer's own.
type metrics struct {
	writes  *prometheus.CounterVec
	samples prometheus.Gauge
}

// New returns a writer of what g gathers, nil if s is not enabled. own is the write stage's handler
// for the URL Here; it may be nil otherwise. The first write is due an interval from now. It counts
// in reg:
//
//	promlake_self_writes_total{result}   writes of these metrics; success, error
//	promlake_self_samples                samples of the write that was put together last
func New(s Settings, g prometheus.Gatherer, reg prometheus.Registerer, own http.Handler, logger *slog.Logger, now func() time.Time) (*Writer, error) {
	if !s.Enabled() {
		return nil, nil
	}
	labels, err := s.labels()
	if err != nil {
		return nil, err
	}
	api, err := newAPI(s, own, now)
	if err != nil {
		return nil, err
	}
	w := &Writer{
		settings: s,
		target:   scrape.Target{Gatherer: g, Labels: labels, Keep: s.keeps},
		api:      api,
		logger:   logger,
		now:      now,
		met: metrics{
			writes: prometheus.NewCounterVec(prometheus.CounterOpts{
				Name: "promlake_self_writes_total", Help: "Writes of the process's own metrics.",
			}, []string{"result"}),
			samples: prometheus.NewGauge(prometheus.GaugeOpts{
				Name: "promlake_self_samples", Help: "Samples in the last write of the process's own metrics.",
			}),
		},
	}
	for _, c := range []prometheus.Collector{w.met.writes, w.met.samples} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register metrics of own metrics: %w", err)
		}
	}
	w.tried.Store(now().UnixMilli())
	return w, nil
}

// MaybeWrite writes if an interval has passed since the last write, or since the start. It takes no
// longer than 2 s or a tenth of the time that ctx leaves, and costs next to nothing where no write
// is due. A write that fails is logged and counted; the next one is due an interval later.
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

// Flush writes the last values, and that all series end here, so that nobody takes the values of a
// process that is gone for current ones. Nothing may be written afterwards. A failure is logged and
// counted.
func (w *Writer) Flush(ctx context.Context) {
	if w == nil {
		return
	}
	w.turn.Lock()
	defer w.turn.Unlock()
	w.attempt(ctx, writeTimeout, true)
}

// Run writes once in an interval until ctx ends.
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
		w.logger.Warn("own metrics could not be written", "err", err)
	}
	w.met.writes.WithLabelValues(result).Inc()
}

func (w *Writer) write(ctx context.Context, now time.Time, last bool) error {
	req, err := w.request(now, last)
	if err != nil {
		return err
	}
	if _, err := w.api.Write(ctx, remote.WriteV1MessageType, req); err != nil {
		return fmt.Errorf("write to %s: %w", w.settings.URL, err)
	}
	w.written = now
	if req.Metadata != nil {
		w.told = now
	}
	return nil
}

// request is what there is to be written: counters that are new begin at 0, so that their first
// value is an increase; all series end a millisecond after the last values.
func (w *Writer) request(now time.Time, last bool) (*prompb.WriteRequest, error) {
	families, err := w.target.Gather()
	if err != nil {
		return nil, err
	}
	req := &prompb.WriteRequest{}
	if err := w.target.Append(req, scrape.Zeros(families, w.written, now), 0); err != nil {
		return nil, err
	}
	zeros := len(req.Timeseries)
	if err := w.target.Append(req, families, now.UnixMilli()); err != nil {
		return nil, err
	}
	if last {
		for i := range req.Timeseries[zeros:] {
			ts := &req.Timeseries[zeros+i]
			ts.Samples = append(ts.Samples, prompb.Sample{Timestamp: now.UnixMilli() + 1, Value: math.Float64frombits(value.StaleNaN)})
		}
	}
	if now.Sub(w.told) >= metadataInterval {
		for _, f := range families {
			req.Metadata = append(req.Metadata, scrape.Metadata(f))
		}
	}
	w.met.samples.Set(float64(len(req.Timeseries)))
	return req, nil
}
