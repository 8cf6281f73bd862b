package lambda

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/aws/signed"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// TestRemote: a request to a function arrives as it was sent, with the identity of its sender and
// without the time limit of the HTTP API, and the answer as it was written, or as an error.
func TestRemote(t *testing.T) {
	var invocation Invocation
	var arrived *http.Request
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		invocation, _ = Current(r.Context())
		arrived = r
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.Copy(w, r.Body)
	})
	mux.HandleFunc("/parts", func(w http.ResponseWriter, _ *http.Request) {
		for range 5 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				panic(http.ErrAbortHandler)
			}
		}
	})
	s := settings.Default[Settings]()
	s.Streaming = true // of its URL
	f := &function{h: Handlers{HTTP: mux}, set: s, log: slog.New(slog.DiscardHandler)}
	next := f.Invoke
	lambdatest.StartAPI(t, func(ctx context.Context, event []byte) ([]byte, error) { return next(ctx, event) })
	const name = "arn:aws:lambda:us-east-1:123456789012:function:promlake-dev-query:live"
	client := &http.Client{Transport: &Remote{Name: name, Client: &signed.Client{Service: "lambda"}}}
	send := func(ctx context.Context, path, kind, body string) (*http.Response, string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://any"+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", kind)
		req.Header.Set("Authorization", "Bearer x")
		resp, err := client.Do(req)
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp, string(b), nil
	}
	for kind, body := range map[string]string{"application/json": `{"a":"ä"}`, "application/octet-stream": "\x00\xff", "text/plain": ""} {
		resp, got, err := send(t.Context(), "/echo?a=1&b=%20", kind, body)
		require.NoError(t, err)
		require.Equal(t, []string{"202 Accepted", kind, body}, []string{resp.Status, resp.Header.Get("Content-Type"), got})
		require.Equal(t, []string{"/echo?a=1&b=%20", "Bearer x"}, []string{arrived.RequestURI, arrived.Header.Get("Authorization")})
		require.Equal(t, Invocation{Event: Direct, Start: invocation.Start}, invocation)
	}
	_, limited := arrived.Context().Deadline()
	require.False(t, limited)

	const arn = "arn:aws:sts::123456789012:assumed-role/grafana/s"
	_, _, err := send(WithInvocation(t.Context(), Invocation{Principal: arn}), "/echo", "", "")
	require.NoError(t, err)
	require.Equal(t, arn, invocation.Principal)
	require.Empty(t, arrived.Header.Get("Authorization"))

	resp, got, err := send(t.Context(), "/parts", "", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.Contains(t, got, "the answer is larger than the 6291556 bytes that AWS Lambda accepts")
	_, _, err = send(t.Context(), "/echo", "", strings.Repeat("x", 5<<20))
	require.ErrorIs(t, err, ErrRequestTooLarge)

	for want, answer := range map[string]func(context.Context, []byte) ([]byte, error){
		"status 200 Unhandled: {\"errorType\":\"Sandbox.Timedout\"": func(context.Context, []byte) ([]byte, error) {
			return nil, &emulator.FunctionError{Type: emulator.ErrorTimeout, Message: "Task timed out"}
		},
		"status 429 TooManyRequestsException: ": func(context.Context, []byte) ([]byte, error) { return nil, errors.New("throttled") },
		"want the answer to an HTTP request, got \"\\\"x\\\"\"": func(context.Context, []byte) ([]byte, error) {
			return []byte(`"x"`), nil
		},
		"want the answer to an HTTP request, got \"{}\"": func(context.Context, []byte) ([]byte, error) { return []byte(`{}`), nil },
	} {
		next = answer
		_, _, err := send(t.Context(), "/echo", "", "")
		require.ErrorContains(t, err, "invoke "+name+": "+want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	next = func(ctx context.Context, _ []byte) ([]byte, error) {
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Minute):
		}
		return nil, ctx.Err()
	}
	_, _, err = send(ctx, "/echo", "", "")
	require.ErrorIs(t, err, context.Canceled)
}
