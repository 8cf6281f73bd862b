package load_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// receiver decodes and counts everything that it is sent.
type receiver struct {
	// answer, if set, decides about the nth request (from 1) instead of a 204; it returns whether
	// it answered.
	answer func(n int, w http.ResponseWriter) bool

	mu       sync.Mutex
	requests int
	samples  int64             // in accepted requests
	bytes    int64             // of compressed bodies
	last     map[string]int64  // series → time (ms) of its latest sample
	first    map[string]int64  // series → time (ms) of its first sample
	headers  []http.Header     // of every request
	complain func(args ...any) // reports requests that a real server would refuse
}

func newReceiver(t *testing.T) (*receiver, string) {
	t.Helper()
	r := &receiver{last: map[string]int64{}, first: map[string]int64{}, complain: t.Error}
	srv := httptest.NewServer(r)
	t.Cleanup(srv.Close)
	return r, srv.URL + "/api/v1/write"
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	packed, err := io.ReadAll(req.Body)
	if err != nil {
		r.complain("read body:", err)
		return
	}
	body, err := snappy.Decode(nil, packed)
	if err != nil {
		r.complain("decompress:", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	r.bytes += int64(len(packed))
	r.headers = append(r.headers, req.Header.Clone())
	if r.answer != nil && r.answer(r.requests, w) {
		return
	}
	n, err := r.store(req.Header.Get("Content-Type"), body)
	if err != nil {
		r.complain(err)
	}
	r.samples += int64(n)
	w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", strconv.Itoa(n))
	w.WriteHeader(http.StatusNoContent)
}

// store decodes a body, checks that every series' samples come in order of time, and returns the
// number of samples.
func (r *receiver) store(contentType string, body []byte) (samples int, err error) {
	b := labels.NewScratchBuilder(0)
	switch contentType {
	case "application/x-protobuf":
		var req prompb.WriteRequest
		if err := req.Unmarshal(body); err != nil {
			return 0, err
		}
		for _, ts := range req.Timeseries {
			for _, s := range ts.Samples {
				samples++
				r.sample(ts.ToLabels(&b, nil), s.Timestamp)
			}
		}
	case "application/x-protobuf;proto=io.prometheus.write.v2.Request":
		var req writev2.Request
		if err := req.Unmarshal(body); err != nil {
			return 0, err
		}
		for _, ts := range req.Timeseries {
			l, err := ts.ToLabels(&b, req.Symbols)
			if err != nil {
				return 0, err
			}
			for _, s := range ts.Samples {
				samples++
				r.sample(l, s.Timestamp)
			}
		}
	default:
		return 0, fmt.Errorf("content type %q", contentType)
	}
	return samples, nil
}

func (r *receiver) sample(l labels.Labels, ts int64) {
	k := l.String()
	if last, known := r.last[k]; !known {
		r.first[k] = ts
	} else if ts <= last {
		r.complain(fmt.Sprintf("%s: %d after %d", k, ts, last))
	}
	r.last[k] = ts
}
