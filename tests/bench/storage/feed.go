package storage

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/peer"
)

const roundsPerRequest = 60 // scrapes of one host in a request

// feed sends the first rounds of all hosts to url, concurrently and for each host in order of time,
// and returns the number of samples. A host sends the same in every call.
func feed(ctx context.Context, url string, r *fleet.Replay, rounds int) (int64, error) {
	var sent atomic.Int64
	hosts, ctx := errgroup.WithContext(ctx)
	for host := range r.Hosts() {
		hosts.Go(func() error {
			body := newBody(r, host)
			for first := 0; first < rounds; first += roundsPerRequest {
				n := min(roundsPerRequest, rounds-first)
				packed, err := body.encode(r, host, first, n)
				if err != nil {
					return err
				}
				if err := peer.Write(ctx, url, packed); err != nil {
					return fmt.Errorf("send scrapes %d to %d of host %d: %w", first, first+n-1, host, err)
				}
				sent.Add(int64(n) * int64(r.PerHost()))
			}
			return nil
		})
	}
	err := hosts.Wait()
	return sent.Load(), err
}

// body is the remote_write request of one host, whose labels never change.
type body struct {
	req    prompb.WriteRequest
	packed []byte
}

func newBody(r *fleet.Replay, host int) *body {
	b := &body{}
	for i := range r.PerHost() {
		var ts prompb.TimeSeries
		r.Labels(host, i).Range(func(l labels.Label) {
			ts.Labels = append(ts.Labels, prompb.Label{Name: l.Name, Value: l.Value})
		})
		b.req.Timeseries = append(b.req.Timeseries, ts)
	}
	return b
}

// encode returns the body with n scrapes from first on, valid until the next call.
func (b *body) encode(r *fleet.Replay, host, first, n int) ([]byte, error) {
	for i := range b.req.Timeseries {
		samples := b.req.Timeseries[i].Samples[:0]
		for round := first; round < first+n; round++ {
			samples = append(samples, prompb.Sample{Timestamp: r.Time(host, round), Value: r.Value(host, i, round)})
		}
		b.req.Timeseries[i].Samples = samples
	}
	plain, err := b.req.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	b.packed = snappy.Encode(b.packed[:cap(b.packed)], plain)
	return b.packed, nil
}
