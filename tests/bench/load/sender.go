package load

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/golang/snappy"

	"github.com/promlake/promlake/tests/bench/fleet"
)

// failurePause is how long a sender waits after a failed request, so that a dead server is not
// hammered.
const failurePause = 50 * time.Millisecond

// sender sends its batches, round by round, one request at a time. Nothing is sent twice: a failure
// is counted and the next batch follows.
type sender struct {
	settings Settings
	fleet    *fleet.Fleet
	batches  []batch
	churn    churn
	client   *http.Client
	conn     net.Conn // of lines over TCP, once one is open
	headers  http.Header
	pace     *pacer
	now      func() time.Time

	values []float64
	body   []byte // before compression
	packed []byte
	tally  tally
}

// run sends until stop ends or the last round is done. Requests in progress continue, under ctx. An
// error means that a request could not be built.
func (s *sender) run(ctx, stop context.Context) (err error) {
	if len(s.batches) == 0 {
		return nil
	}
	defer func() {
		if s.conn != nil {
			err = errors.Join(err, s.conn.Close())
		}
	}()
	for round := 0; s.settings.Rounds == 0 || round < s.settings.Rounds; round++ {
		if err := s.churn.renew(s.fleet, s.settings.Protocol, s.batches, time.Duration(round)*s.settings.Interval); err != nil {
			return err
		}
		for _, b := range s.batches {
			if !s.pace.wait(stop, b.body.Len()) {
				return nil
			}
			if !s.send(ctx, b, round) && !sleep(stop, failurePause) {
				return nil
			}
		}
	}
	return nil
}

// send sends one batch and reports whether the server accepted it.
func (s *sender) send(ctx context.Context, b batch, round int) bool {
	n := b.body.Len()
	ts := timestamp(s.settings, round)
	if cap(s.values) < n {
		s.values = make([]float64, n)
	}
	s.values = s.values[:n]
	s.fleet.Values(s.values, b.first, round, ts)
	s.body = b.body.Append(s.body[:0], ts, s.values)
	sent := s.body // the other protocols' exporters do not compress by default
	if s.settings.Protocol.Remote() {
		s.packed = snappy.Encode(s.packed[:cap(s.packed)], s.body)
		sent = s.packed
	}

	begin := s.now()
	out := s.post(ctx, sent, n)
	s.tally.add(out, request{samples: n, round: round, took: s.now().Sub(begin), body: len(s.body), wire: len(sent)})
	return out.ok
}

// timestamp is the sample time of a round, ms since the Unix epoch.
func timestamp(s Settings, round int) int64 {
	return s.Start.UnixMilli() + int64(round)*s.Interval.Milliseconds()
}
