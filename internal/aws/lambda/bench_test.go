package lambda

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"
)

// incompressible returns base64 text that decodes to n bytes.
func incompressible(n int) string {
	b := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range b { // xorshift64
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte(x)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// requestOf returns the recorded write request with another body.
func requestOf(tb testing.TB, n int) []byte {
	tb.Helper()
	var e events.APIGatewayV2HTTPRequest
	require.NoError(tb, json.Unmarshal(recorded(tb, "http-api-write-v1"), &e))
	e.Body = incompressible(n)
	b, err := json.Marshal(e)
	require.NoError(tb, err)
	return b
}

// batchOf returns the recorded batch with n messages of size bytes of text.
func batchOf(tb testing.TB, n, size int) []byte {
	tb.Helper()
	var e events.SQSEvent
	require.NoError(tb, json.Unmarshal(recorded(tb, "sqs-standard"), &e))
	m := e.Records[0]
	m.Body = incompressible(size)[:size]
	e.Records = nil
	for range n {
		e.Records = append(e.Records, m)
	}
	b, err := json.Marshal(e)
	require.NoError(tb, err)
	return b
}

// reading returns a handler that reads bodies into its own memory, as a stage does.
func reading() http.Handler {
	var into []byte
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if int64(len(into)) < r.ContentLength {
			into = make([]byte, r.ContentLength)
		}
		if _, err := io.ReadFull(r.Body, into[:r.ContentLength]); err != nil {
			panic(err)
		}
		w.WriteHeader(http.StatusNoContent)
	})
}

// BenchmarkRequest measures the adapter with a write request. impl=encoding/json decodes with
// aws-lambda-go's types instead.
func BenchmarkRequest(b *testing.B) {
	for _, size := range []int{64 << 10, 1 << 20, 4 << 20} {
		payload := requestOf(b, size)
		h := reading()
		b.Run(fmt.Sprintf("impl=ours/bytes=%d", size), func(b *testing.B) {
			f := newFunction(Handlers{HTTP: h})
			measure(b, size, func() error { _, err := f.Invoke(b.Context(), payload); return err })
		})
		b.Run(fmt.Sprintf("impl=streaming/bytes=%d", size), func(b *testing.B) {
			f := newFunction(Handlers{HTTP: h})
			measure(b, size, func() error {
				var d document
				if err := json.Unmarshal(payload, &d); err != nil {
					return err
				}
				_, err := f.streaming(b.Context(), d)
				return err
			})
		})
		b.Run(fmt.Sprintf("impl=encoding-json/bytes=%d", size), func(b *testing.B) {
			measure(b, size, func() error {
				var e events.APIGatewayV2HTTPRequest
				if err := json.Unmarshal(payload, &e); err != nil {
					return err
				}
				_, err := base64.StdEncoding.DecodeString(e.Body)
				return err
			})
		})
	}
}

// BenchmarkBatch measures the adapter with ten messages of 256 KiB.
func BenchmarkBatch(b *testing.B) {
	const n, size = 10, 256 << 10
	payload := batchOf(b, n, size)
	b.Run("impl=ours", func(b *testing.B) {
		f := newFunction(Handlers{Messages: func(_ context.Context, batch []Message) ([]string, error) { return nil, nil }})
		measure(b, n*size, func() error { _, err := f.Invoke(b.Context(), payload); return err })
	})
	b.Run("impl=encoding-json", func(b *testing.B) {
		measure(b, n*size, func() error {
			var e events.SQSEvent
			return json.Unmarshal(payload, &e)
		})
	})
}

// BenchmarkAnswer measures the adapter with an answer: JSON text, or bytes as base64.
func BenchmarkAnswer(b *testing.B) {
	const size = 1 << 20
	payload := recorded(b, "http-api-query")
	for kind, body := range map[string]string{
		"text":   strings.Repeat(`[1764000015,"0.123456789"],`, size/27),
		"binary": incompressible(size)[:size],
	} {
		b.Run("kind="+kind, func(b *testing.B) {
			f := newFunction(answering(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[string]string{"text": "application/json", "binary": "application/octet-stream"}[kind])
				for rest := []byte(body); len(rest) > 0; {
					n := min(len(rest), 32<<10)
					_, _ = w.Write(rest[:n])
					rest = rest[n:]
				}
			}))
			measure(b, len(body), func() error {
				v, err := f.streaming(b.Context(), payload)
				if err != nil {
					return err
				}
				return v.(io.Closer).Close()
			})
		})
	}
}

// measure reports processor time per MB (10^6 bytes), including garbage collection, which does not
// depend on the load of the machine.
func measure(b *testing.B, size int, f func() error) {
	b.Helper()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	begin := processorTime(b)
	for b.Loop() {
		if err := f(); err != nil {
			b.Fatal(err)
		}
	}
	ms := (processorTime(b) - begin).Seconds() * 1000
	b.ReportMetric(ms/float64(b.N)/(float64(size)/1e6), "cpu-ms/MB")
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
