package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
)

// answered is an answer of payload format 2.0.
type answered struct {
	Status  int               `json:"statusCode"`
	Headers map[string]string `json:"headers"`
	Cookies []string          `json:"cookies"`
	Body    string            `json:"body"`
	Base64  bool              `json:"isBase64Encoded"`
}

func newFunction(h Handlers) *function {
	return &function{h: h, set: settings.Default[Settings](), log: slog.New(slog.DiscardHandler)}
}

func ask(t *testing.T, f *function, payload []byte) answered {
	t.Helper()
	b, err := f.Invoke(t.Context(), payload)
	require.NoError(t, err)
	require.LessOrEqual(t, int64(len(b)), f.set.MaxAnswerBytes)
	var a answered
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&a), string(b))
	return a
}

func answering(f func(w http.ResponseWriter, r *http.Request)) Handlers {
	return Handlers{HTTP: http.HandlerFunc(f)}
}

func TestAnswers(t *testing.T) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	ascii := string(every[:0x80])
	for _, tc := range []struct {
		name    string
		handler func(w http.ResponseWriter, r *http.Request)
		want    answered
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, answered{Status: 200, Headers: map[string]string{}}},
		{"no content", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, answered{Status: 204, Headers: map[string]string{}}},
		{"text", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, "a\"ä\u2028<&>")
			_, _ = io.WriteString(w, ascii)
		}, answered{Status: 200, Headers: map[string]string{"Content-Type": "text/plain; charset=utf-8"}, Body: "a\"ä\u2028<&>" + ascii}},
		{"binary", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-protobuf")
			w.Header().Set("Content-Length", "256")
			_, _ = w.Write(every)
		}, answered{
			Status: 200, Headers: map[string]string{"Content-Type": "application/x-protobuf"}, Body: base64.StdEncoding.EncodeToString(every), Base64: true,
		}},
		{"compressed", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "gz")
		}, answered{Status: 200, Headers: map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}, Body: "Z3o=", Base64: true}},
		{"text that is no UTF-8", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "\xff")
		}, answered{Status: 200, Headers: map[string]string{"Content-Type": "text/plain"}, Body: "/w==", Base64: true}},
		{"unknown type", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<!DOCTYPE html>") },
			answered{Status: 200, Headers: map[string]string{"Content-Type": "text/html; charset=utf-8"}, Body: "<!DOCTYPE html>"}},
		{"headers", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("Vary", "Origin")
			w.Header().Add("Vary", "Accept-Encoding")
			w.Header().Add("Set-Cookie", "a=1")
			w.Header().Add("Set-Cookie", "b=2, 3")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK)
			w.Header().Set("Late", "x")
		}, answered{Status: 418, Headers: map[string]string{"Vary": "Origin, Accept-Encoding"}, Cookies: []string{"a=1", "b=2, 3"}}},
		{"panic", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusTeapot)
			panic("boom")
		}, answered{
			Status: 500, Headers: map[string]string{"Content-Type": "application/json", "X-Content-Type-Options": "nosniff"},
			Body: `{"status":"error","errorType":"internal","error":"handler panicked: boom"}`,
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, ask(t, newFunction(answering(tc.handler)), recorded(t, "http-api-query")))
		})
	}
}

func TestAnswerLimit(t *testing.T) {
	for _, tc := range []struct {
		name, kind string
		text       string
	}{
		{"text", "text/plain", "abc"},
		{"text that is shorter as base64", "text/plain", "\x01"},
		{"binary", "application/octet-stream", "abc"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFunction(Handlers{})
			f.set.MaxAnswerBytes = 8192
			size := 0
			var wrote error
			f.h = answering(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tc.kind)
				for n := 0; n < size && wrote == nil; n += len(tc.text) {
					_, wrote = io.WriteString(w, tc.text)
				}
			})
			// The size increases until the answer is too large; ask compares every answer with the
			// limit.
			fit := 0
			for size = 1000; ; size += 13 {
				a := ask(t, f, recorded(t, "http-api-query"))
				if a.Status == 422 {
					require.Equal(t, "application/json", a.Headers["Content-Type"])
					require.Contains(t, a.Body, `{"status":"error","errorType":"execution","error":"the answer is larger than the 8192 bytes`)
					require.Contains(t, a.Body, "the function's URL, which streams")
					break
				}
				fit = size
			}
			require.Greater(t, fit, 5900, "base64 leaves room for so much at least")
			size, wrote = 1<<30, nil
			require.Equal(t, 422, ask(t, f, recorded(t, "http-api-query")).Status)
			require.ErrorIs(t, wrote, errTooLarge, "the handler may stop")
			wrote = nil
			require.Contains(t, ask(t, f, recorded(t, "function-url-query")).Body, "InvokeMode RESPONSE_STREAM")
		})
	}
}

func TestHandlersThatWantAFlusherGetOne(t *testing.T) {
	a := ask(t, newFunction(answering(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "a")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "b")
	})), recorded(t, "http-api-query"))
	require.Equal(t, "ab", a.Body)
}

func TestMessages(t *testing.T) {
	fail := errors.New("store is gone")
	for _, tc := range []struct {
		name   string
		failed []string
		err    error
		want   string
	}{
		{"all well", nil, nil, `{"batchItemFailures":[]}`},
		{"one failed", []string{"2e1424d4-f796-459a-8184-9c92662be6da"}, nil, `{"batchItemFailures":[{"itemIdentifier":"2e1424d4-f796-459a-8184-9c92662be6da"}]}`},
		{"all failed", nil, fail, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFunction(Handlers{Messages: func(_ context.Context, batch []Message) ([]string, error) {
				require.Len(t, batch, 2)
				return tc.failed, tc.err
			}})
			b, err := f.Invoke(t.Context(), recorded(t, "sqs-standard"))
			if tc.err != nil {
				require.ErrorIs(t, err, fail)
				require.ErrorContains(t, err, "handle 2 messages: ")
				return
			}
			require.NoError(t, err)
			require.JSONEq(t, tc.want, string(b))
		})
	}
}

func TestPanicsAreErrors(t *testing.T) {
	f := newFunction(Handlers{
		Messages: func(context.Context, []Message) ([]string, error) { panic("m") },
		Schedule: func(context.Context, time.Time) error { panic("s") },
		After:    func(context.Context) { panic("a") },
	})
	_, err := f.Invoke(t.Context(), recorded(t, "sqs-fifo"))
	require.ErrorIs(t, err, errPanic)
	_, err = f.Invoke(t.Context(), recorded(t, "eventbridge-rule"))
	require.ErrorIs(t, err, errPanic)
}

func TestDeadlineLeavesTimeToAnswer(t *testing.T) {
	for _, tc := range []struct {
		event         string
		timeout, want time.Duration
	}{
		{"eventbridge-rule", 15 * time.Minute, 15*time.Minute - 500*time.Millisecond},
		{"eventbridge-rule", time.Second, 750 * time.Millisecond},
		{"function-url-query", 15 * time.Minute, 15*time.Minute - 500*time.Millisecond},
		{"http-api-query", 15 * time.Minute, 28500 * time.Millisecond},
		{"http-api-query", 10 * time.Second, 9500 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			var left time.Duration
			look := func(ctx context.Context) {
				end, ok := ctx.Deadline()
				require.True(t, ok)
				left = time.Until(end)
			}
			f := newFunction(Handlers{
				HTTP:     http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { look(r.Context()) }),
				Schedule: func(ctx context.Context, _ time.Time) error { look(ctx); return nil },
			})
			ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
			defer cancel()
			_, err := f.Invoke(ctx, recorded(t, tc.event))
			require.NoError(t, err)
			require.Equal(t, tc.want, left, tc)
		})
	}
}

func TestSettingsValidate(t *testing.T) {
	require.NoError(t, settings.Default[Settings]().Validate())
	err := Settings{MaxAnswerBytes: 1 << 30, Margin: -1}.Validate()
	for _, want := range []string{
		"lambda.max-answer-bytes: want at most 6291556, got 1GiB", "lambda.max-stream-bytes: want at least 4KiB, got 0",
		"lambda.http-api-timeout: want more than 0, got 0s", "lambda.deadline-margin: want at least 0, got -1ns",
	} {
		require.ErrorContains(t, err, want)
	}
}

func TestQuotedIsJSON(t *testing.T) {
	for _, text := range []string{"", "plain", "\x00\x1f\"\\/\u007f", strings.Repeat("\n", 100) + "ä😀", strings.Repeat("ab\x01", 5000)} {
		q := appendQuoted(nil, []byte(text), 1<<20)
		var got string
		require.NoError(t, json.Unmarshal([]byte(`"`+string(q)+`"`), &got))
		require.Equal(t, text, got)
	}
}
