package load_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/wire"
)

var start = time.UnixMilli(1_795_220_058_000)

// smallFleet has 5 hosts of 10 series.
func smallFleet(t *testing.T) *fleet.Fleet {
	t.Helper()
	c := &capture.Capture{Times: []int64{1, 2}}
	for i := range 10 {
		c.Series = append(c.Series, capture.Series{Labels: labels.FromStrings("__name__", fmt.Sprintf("m%d_total", i)), Values: []float64{1e9, 2e9}})
	}
	f, err := fleet.New(c, 5)
	require.NoError(t, err)
	return f
}

func TestEverythingSentArrives(t *testing.T) {
	for _, v := range []wire.Version{wire.V1, wire.V2} {
		for _, senders := range []int{1, 3, 20} { // 20: more than there are batches
			t.Run(fmt.Sprintf("protocol=%d/senders=%d", v, senders), func(t *testing.T) {
				got, url := newReceiver(t)
				r, err := load.Run(t.Context(), smallFleet(t), load.Settings{
					URL: url, PID: os.Getpid(), Protocol: v, Batch: 12, Concurrency: senders, Rounds: 7, Start: start, Interval: 10 * time.Second,
					Headers: map[string]string{"X-Scope-OrgID": "someone"},
				}, time.Now)
				require.NoError(t, err)

				require.Equal(t, int64(5*10*7), r.Samples)
				require.Equal(t, r.Samples, got.samples)
				require.Equal(t, r.Samples, r.SamplesSent)
				require.Equal(t, 5*7, r.RequestsOK, "12+12+12+12+2 series a round")
				require.Equal(t, got.requests, r.RequestsOK)
				require.Equal(t, map[string]int{"204": 35}, r.Outcomes)
				require.Zero(t, r.RequestsFailed)
				require.InDelta(t, float64(got.bytes)/350, r.WireBytesPerSample, 1e-9)
				require.Greater(t, r.BodyBytesPerSample, r.WireBytesPerSample)
				require.Equal(t, start.UnixMilli(), r.FirstSampleMS)
				require.Equal(t, start.UnixMilli()+60_000, r.LastSampleMS)
				require.Len(t, got.last, 50)
				for series, last := range got.last {
					require.Equal(t, r.LastSampleMS, last, series)
					require.Equal(t, r.FirstSampleMS, got.first[series], series)
				}
				require.Positive(t, r.Latency.P50)
				require.GreaterOrEqual(t, r.Latency.Max, r.Latency.P99)
				require.NotNil(t, r.Server)
				require.Positive(t, r.Server.PeakRSSBytes)
			})
		}
	}
}

func TestHeadersOfARealSender(t *testing.T) {
	for v, want := range map[wire.Version]map[string]string{
		wire.V1: {"Content-Type": "application/x-protobuf", "X-Prometheus-Remote-Write-Version": "0.1.0"},
		wire.V2: {"Content-Type": "application/x-protobuf;proto=io.prometheus.write.v2.Request", "X-Prometheus-Remote-Write-Version": "2.0.0"},
	} {
		got, url := newReceiver(t)
		_, err := load.Run(t.Context(), smallFleet(t), load.Settings{URL: url, Protocol: v, Rounds: 1, Headers: map[string]string{"X-Scope-OrgID": "someone"}}, time.Now)
		require.NoError(t, err)
		require.Len(t, got.headers, 1)
		require.Equal(t, "snappy", got.headers[0].Get("Content-Encoding"))
		require.Equal(t, "someone", got.headers[0].Get("X-Scope-OrgID"))
		require.NotEmpty(t, got.headers[0].Get("User-Agent"))
		for name, value := range want {
			require.Equal(t, value, got.headers[0].Get(name))
		}
	}
}

func TestFailuresAreCounted(t *testing.T) {
	got, url := newReceiver(t)
	got.answer = func(n int, w http.ResponseWriter) bool {
		switch n {
		case 1:
			http.Error(w, "too much", http.StatusTooManyRequests)
		case 2:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusFound)
		default:
			return false
		}
		return true
	}
	r, err := load.Run(t.Context(), smallFleet(t), load.Settings{URL: url, Batch: 10, Concurrency: 1, Rounds: 1}, time.Now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"204": 3, "302": 1, "429": 1}, r.Outcomes)
	require.Equal(t, map[string]string{"302": "", "429": "too much"}, r.Messages)
	require.Equal(t, 3, r.RequestsOK)
	require.Equal(t, 2, r.RequestsFailed)
	require.Equal(t, int64(30), r.Samples)
	require.Equal(t, int64(50), r.SamplesSent)
	require.Equal(t, got.samples, r.Samples)
}

func TestProtocol2NeedsConfirmation(t *testing.T) {
	got, url := newReceiver(t)
	got.answer = func(n int, w http.ResponseWriter) bool {
		if n == 1 {
			w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "9")
		}
		return n <= 2 // the second without the header
	}
	r, err := load.Run(t.Context(), smallFleet(t), load.Settings{URL: url, Protocol: wire.V2, Batch: 10, Concurrency: 1, Rounds: 1}, time.Now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"204": 3, load.OutcomeUnconfirmed: 2}, r.Outcomes)
	require.Equal(t, `status 200, X-Prometheus-Remote-Write-Samples-Written: "9", sent 10`, r.Messages[load.OutcomeUnconfirmed])
	require.Equal(t, int64(30), r.Samples)
}

func TestNoListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	r, err := load.Run(t.Context(), smallFleet(t), load.Settings{URL: url, Concurrency: 1, Rounds: 2}, time.Now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{load.OutcomeTransport: 2}, r.Outcomes)
	require.Zero(t, r.Samples)
}

func TestTimeout(t *testing.T) {
	got, url := newReceiver(t)
	release := make(chan struct{})
	defer close(release)
	got.answer = func(int, http.ResponseWriter) bool { <-release; return true }
	r, err := load.Run(t.Context(), smallFleet(t), load.Settings{URL: url, Concurrency: 1, Rounds: 1, Timeout: time.Millisecond}, time.Now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{load.OutcomeTimeout: 1}, r.Outcomes)
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got, url := newReceiver(t)
	got.answer = func(n int, _ http.ResponseWriter) bool {
		if n == 3 {
			cancel()
		}
		return false
	}
	r, err := load.Run(ctx, smallFleet(t), load.Settings{URL: url, Concurrency: 1, Duration: time.Hour}, time.Now)
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, r.SamplesSent)
}

func TestMissingServerProcess(t *testing.T) {
	_, url := newReceiver(t)
	_, err := load.Run(t.Context(), smallFleet(t), load.Settings{URL: url, PID: 1 << 30}, time.Now)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestReportPrints(t *testing.T) {
	_, url := newReceiver(t)
	r, err := load.Run(t.Context(), smallFleet(t), load.Settings{URL: url, PID: os.Getpid(), Rounds: 2, Start: start}, time.Now)
	require.NoError(t, err)
	var text, data bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	for _, part := range []string{"100 accepted of 100 sent", "2 ok, 0 failed", "  204", "2026-11-21T00:14:18Z to 2026-11-21T00:14:33Z", "server peak RSS"} {
		require.Contains(t, text.String(), part)
	}
	require.NoError(t, r.WriteJSON(&data))
	var back load.Report
	require.NoError(t, json.Unmarshal(data.Bytes(), &back))
	require.Equal(t, r, back)
}

// TestLinesOverTCP: every sample is written once, to a connection of each sender, and a refused
// connection is a failure.
func TestLinesOverTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	const senders = 3
	lines := make(chan []string, senders)
	for range senders {
		go func() {
			conn, err := l.Accept()
			if err != nil {
				lines <- []string{err.Error()}
				return
			}
			b, err := io.ReadAll(conn)
			lines <- append(strings.Split(strings.TrimSpace(string(b)), "\n"), fmt.Sprint(err))
		}()
	}
	settings := load.Settings{URL: "tcp://" + l.Addr().String(), Protocol: wire.Graphite, Batch: 12, Concurrency: senders, Rounds: 7, Start: start}
	r, err := load.Run(t.Context(), smallFleet(t), settings, time.Now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{load.OutcomeWritten: 5 * 7}, r.Outcomes)
	require.Equal(t, int64(5*10*7), r.Samples)
	arrived := map[string]int{}
	for range senders {
		got := <-lines
		require.Equal(t, "<nil>", got[len(got)-1])
		for _, line := range got[:len(got)-1] {
			arrived[line]++
		}
	}
	require.Len(t, arrived, 5*10*7)
	for line, times := range arrived {
		require.Equal(t, 1, times, line)
	}

	require.NoError(t, l.Close())
	settings.Rounds, settings.Concurrency = 1, 1
	r, err = load.Run(t.Context(), smallFleet(t), settings, time.Now)
	require.NoError(t, err)
	require.Equal(t, map[string]int{load.OutcomeTransport: 5}, r.Outcomes)
}
