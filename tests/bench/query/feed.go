package query

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/peer"
)

const (
	seriesPerRequest = 1000
	// of the main data that is sent at once; Prometheus takes samples up to an hour older than its
	// newest
	slice        = 15 * time.Minute
	historySlice = 7 * 24 * time.Hour
	senders      = 4
)

// feed sends the data set mixed to url and returns the numbers of samples and series: the long
// history until the main data begins, then both.
func feed(ctx context.Context, url string, s scale) (samples, series int64, err error) {
	history := s.history()
	before, err := feedSlices(ctx, url, history, s.end().Add(-s.History), start, historySlice, together)
	if err != nil {
		return before, 0, err
	}
	all := append(s.series(), history...)
	samples, err = feedSlices(ctx, url, all, start, s.end(), slice, together)
	return before + samples, int64(len(all)), err
}

// feedSlices sends the samples of all series from a time on until another, and returns their
// number: slice by slice, so that a server that requires samples in order gets them in order.
func feedSlices(ctx context.Context, url string, all []*generator, from, to time.Time, slice time.Duration, arrange func([]prompb.TimeSeries) []prompb.TimeSeries) (int64, error) {
	var sent atomic.Int64
	for t := from; t.Before(to); {
		t = earlier(t.Add(slice), to)
		slices, ctx := errgroup.WithContext(ctx)
		slices.SetLimit(senders)
		for i := 0; i < len(all); i += seriesPerRequest {
			some := all[i:min(i+seriesPerRequest, len(all))]
			slices.Go(func() error { return send(ctx, url, some, t, arrange, &sent) })
		}
		if err := slices.Wait(); err != nil {
			return sent.Load(), err
		}
	}
	return sent.Load(), nil
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// send sends in one request the next samples of some series before t.
func send(ctx context.Context, url string, some []*generator, t time.Time, arrange func([]prompb.TimeSeries) []prompb.TimeSeries, sent *atomic.Int64) error {
	var all []prompb.TimeSeries
	var n int64
	for _, g := range some {
		if samples := g.take(t.UnixMilli(), nil); len(samples) > 0 {
			all = append(all, prompb.TimeSeries{Labels: g.labels, Samples: samples})
			n += int64(len(samples))
		}
	}
	req := prompb.WriteRequest{Timeseries: arrange(all)}
	plain, err := req.Marshal()
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	if err := peer.Write(ctx, url, snappy.Encode(nil, plain)); err != nil {
		return fmt.Errorf("send %d samples before %s: %w", n, t.Format(time.RFC3339), err)
	}
	sent.Add(n)
	return nil
}

// together leaves all samples of a series at one place of a request, as they are backfilled.
func together(all []prompb.TimeSeries) []prompb.TimeSeries { return all }

// apart repeats the labels of a series for each of its samples, in order of time, as Prometheus
// sends them. All series must have samples at the same times.
func apart(all []prompb.TimeSeries) (out []prompb.TimeSeries) {
	for i := range all[0].Samples {
		for _, ts := range all {
			out = append(out, prompb.TimeSeries{Labels: ts.Labels, Samples: ts.Samples[i : i+1]})
		}
	}
	return out
}
