package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/aws/lambda"
)

// worker is a stage that takes everything.
type worker struct {
	Idle
	ticks  int
	err    error
	after  int
	closed []string
}

func (*worker) Consume(_ context.Context, batch []lambda.Message) ([]string, error) {
	return []string{batch[0].ID}, nil
}

func (w *worker) Tick(context.Context, time.Time) error {
	w.ticks++
	return w.err
}

func (w *worker) After(context.Context) { w.after++ }

func (w *worker) Drain(context.Context) error { w.closed = append(w.closed, "drain"); return nil }
func (w *worker) Close() error                { w.closed = append(w.closed, "close"); return nil }

// ticker is a stage that takes schedules only.
type ticker struct{ Idle }

func (ticker) Tick(context.Context, time.Time) error { return errors.New("second") }

func made(all ...Stage) *started {
	return &started{stages: all, handler: http.NotFoundHandler(), reg: prometheus.NewRegistry()}
}

// TestIdentities: the identity of an event opens the routes that its entry allows. A server takes
// none: its requests need a token.
func TestIdentities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"version":1,"tokens":[{"principal":"arn:aws:iam::123456789012:role/x","tenants":["a"],"access":["write"]}]}`), 0o600))
	reg := prometheus.NewRegistry()
	guard, err := auth.New(auth.Settings{Tokens: "file:" + file}, reg, slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	site, err := auth.NewSite(auth.SiteSettings{}, false, reg)
	require.NoError(t, err)
	m := made()
	m.handler = routes(reg, site, guard, stages{routed{}})
	h, err := handlers(m, newFunctionMetrics(nil, 0, 0), &currentRequest{})
	require.NoError(t, err)
	ask := func(h http.Handler, path, arn string) (int, string) {
		r := httptest.NewRequest(http.MethodPost, path, nil)
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x")
		r.Header.Set("X-Amzn-User-Arn", "arn:aws:iam::123456789012:role/x")
		if arn != "" {
			r = r.WithContext(lambda.WithInvocation(r.Context(), lambda.Invocation{Principal: arn}))
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	const session = "arn:aws:sts::123456789012:assumed-role/"
	for _, tc := range []struct {
		path, arn string
		code      int
		body      string // contained
	}{
		{"/api/v1/write", session + "x/s", 200, "/api/v1/write of a"},
		{"/workspaces/a/api/v1/remote_write", session + "x/s", 200, "/api/v1/write of a"},
		{"/workspaces/b/api/v1/remote_write", session + "x/s", 403, "role/x is not for tenant"},
		{"/api/v1/query", session + "x/s", 403, "lacks access"},
		{"/api/v1/write", session + "y/s", 403, "no entry for the principal " + session + "y/s"},
		{"/api/v1/write", "", 401, "malformed"},
	} {
		code, body := ask(h.HTTP, tc.path, tc.arn)
		require.Equal(t, tc.code, code, "%v: %s", tc, body)
		require.Contains(t, body, tc.body)
		// Without the handler of a function, nothing reads the identity of an invocation.
		code, _ = ask(m.handler, tc.path, tc.arn)
		require.Equal(t, http.StatusUnauthorized, code, tc)
	}
}

func TestHandlersOfStages(t *testing.T) {
	m := newFunctionMetrics(nil, 0, 0)
	h, err := handlers(made(Idle{}), m, &currentRequest{})
	require.NoError(t, err)
	require.Nil(t, h.Messages)
	require.Nil(t, h.Schedule)
	w := httptest.NewRecorder()
	h.HTTP.ServeHTTP(w, httptest.NewRequest("GET", "/-/ready", nil))
	require.Equal(t, 200, w.Code)

	s := &worker{err: errors.New("first")}
	h, err = handlers(made(Idle{}, s, ticker{}), m, &currentRequest{})
	require.NoError(t, err)
	failed, err := h.Messages(t.Context(), []lambda.Message{{ID: "a"}})
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, failed)
	err = h.Schedule(t.Context(), time.Time{})
	require.ErrorIs(t, err, s.err)
	require.ErrorContains(t, err, "second", "all stages work, also when one fails")
	h.After(t.Context())
	require.Equal(t, 1, s.after)
	require.NoError(t, h.Shutdown(t.Context()))
	require.Equal(t, []string{"drain", "close"}, s.closed)

	_, err = handlers(made(s, &worker{}), m, &currentRequest{})
	require.ErrorContains(t, err, "two stages take messages")
}

func TestFunctionMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := newFunctionMetrics(reg, 512<<20, 100*time.Millisecond)
	m.begin()
	require.InDelta(t, 0.05, testutil.ToFloat64(m.billed), 1e-9, "the start is billed")
	i := lambda.Invocation{ID: "1", Event: lambda.SQS, Start: time.Now()}
	ctx := lambda.WithInvocation(t.Context(), i)
	for range 2 {
		m.begin()
		m.end(ctx, i.Start.Add(1500*time.Microsecond))
	}
	m.end(t.Context(), time.Now()) // no invocation
	require.InDelta(t, 0.05+2*0.001, testutil.ToFloat64(m.billed), 1e-9, "2 ms each, of half a GB")
	require.Equal(t, 1.0, testutil.ToFloat64(m.cold))
	require.Equal(t, 2.0, testutil.ToFloat64(m.invocations.WithLabelValues("sqs")))
	n, err := testutil.GatherAndCount(reg, "promlake_function_duration_seconds")
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestLinesNameTheInvocation(t *testing.T) {
	var out bytes.Buffer
	current := &currentRequest{}
	log := slog.New(requestHandler{slog.NewJSONHandler(&out, nil), current}).With("stage", "x")
	line := func(ctx context.Context) any {
		out.Reset()
		log.InfoContext(ctx, "hello")
		var v map[string]any
		require.NoError(t, json.Unmarshal(out.Bytes(), &v))
		require.Equal(t, "x", v["stage"])
		return v[requestKey]
	}
	ctx := lambda.WithInvocation(t.Context(), lambda.Invocation{ID: "id-1"})
	require.Nil(t, line(t.Context()))
	require.Equal(t, "id-1", line(ctx))
	current.enter(ctx)
	require.Equal(t, "id-1", line(t.Context()), "there is only one invocation that it can be about")
	current.id.Store(nil)
	require.Nil(t, line(t.Context()))
}

func TestHeapLimit(t *testing.T) {
	const memory = 1000 << 20
	require.EqualValues(t, 800<<20, heapLimit(0, "", memory))
	require.EqualValues(t, 5, heapLimit(5, "", memory))
	require.EqualValues(t, 0, heapLimit(0, "1GiB", memory), "GOMEMLIMIT stands")
	require.EqualValues(t, 0, heapLimit(0, "", 0))
	require.Less(t, heapLimit(0, "", math.MaxInt64), int64(math.MaxInt64))
}

func TestFunctionErrors(t *testing.T) {
	s := DefaultSettings()
	s.Lambda.Margin = -1
	require.ErrorContains(t, Function(t.Context(), s, slog.New(slog.DiscardHandler)), "check settings: lambda.deadline-margin")
	s = DefaultSettings()
	s.Store = "gopher://x?secret=1"
	require.ErrorContains(t, Function(t.Context(), s, slog.New(slog.DiscardHandler)), "start: open store gopher://x: ")
	s.Store = "file://" + t.TempDir()
	require.ErrorIs(t, Function(t.Context(), s, slog.New(slog.DiscardHandler)), lambda.ErrNotInLambda)
	s.Store = "s3://bucket?region=here&endpoint=http://127.0.0.1:1&access_key=k&secret_key=s"
	require.ErrorIs(t, Function(t.Context(), s, slog.New(slog.DiscardHandler)), lambda.ErrNotInLambda, "a cold start asks nothing of the store")
}
