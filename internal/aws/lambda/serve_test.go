package lambda

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// Variables that make the test binary a bootstrap.
const (
	envBootstrap = "PROMLAKE_TEST_BOOTSTRAP" // streaming or whole
	envGoodbye   = "PROMLAKE_TEST_GOODBYE"   // file that Shutdown writes
)

func TestMain(m *testing.M) {
	if mode := os.Getenv(envBootstrap); mode != "" {
		if err := bootstrap(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func bootstrap(mode string) error {
	s := settings.Default[Settings]()
	s.Streaming = mode == "streaming"
	s.MaxStreamBytes = 9 << 20
	s.Margin = time.Minute // at most a quarter of an invocation's time
	var met sync.WaitGroup // two invocations that wait for each other
	met.Add(2)
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		i, _ := Current(r.Context())
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Header().Set("X-Event", string(i.Event))
		w.Header().Set("X-Request", i.ID)
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		_, _ = io.Copy(w, r.Body)
	})
	mux.HandleFunc("/large/{bytes}", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("bytes"))
		w.Header().Set("Content-Type", "text/plain")
		for i := 0; i < n; i += 1 << 20 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), min(1<<20, n-i)))
		}
	})
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		_, _ = io.WriteString(w, "; then "+r.Context().Err().Error())
	})
	mux.HandleFunc("/panic", func(http.ResponseWriter, *http.Request) { panic("early") })
	mux.HandleFunc("/panic/late", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		panic("late")
	})
	mux.HandleFunc("/meet", func(http.ResponseWriter, *http.Request) {
		met.Done()
		met.Wait()
	})
	return Serve(context.Background(), Handlers{
		HTTP:     mux,
		Schedule: func(context.Context, time.Time) error { return errors.New("no luck") },
		Shutdown: func(context.Context) error { return os.WriteFile(os.Getenv(envGoodbye), []byte("goodbye"), 0o600) },
	}, s, slog.New(slog.NewTextHandler(os.Stderr, nil)))
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	return path
}

// client returns a function that sends requests to the handler h over HTTP.
func client(t *testing.T, h http.Handler) func(method, path, kind, body string) (*http.Response, string, error) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return func(method, path, kind, body string) (*http.Response, string, error) {
		req, err := http.NewRequest(method, srv.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", kind)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp, string(b), err
	}
}

func TestServe(t *testing.T) {
	for _, mode := range []string{"whole", "streaming"} {
		f := lambdatest.Start(t, emulator.Settings{Path: self(t), Env: []string{envBootstrap + "=" + mode}})
		for _, face := range []struct {
			name string
			h    http.Handler
		}{
			{string(HTTPAPI), &emulator.Gateway{Routes: map[string]emulator.Invoker{"$default": f}}},
			{string(FunctionURL), &emulator.URL{Function: f, Stream: mode == "streaming"}},
		} {
			t.Run(mode+"/"+face.name, func(t *testing.T) {
				get := client(t, face.h)
				for kind, body := range map[string]string{
					"text/plain": "text \" ä\n", "application/x-protobuf": "\x00\xff\x01binary", "application/octet-stream": strings.Repeat("\xfe", 4<<20),
				} {
					resp, got, err := get("POST", "/echo?a=1", kind, body)
					require.NoError(t, err)
					require.Equal(t, 200, resp.StatusCode)
					require.True(t, body == got, kind)
					require.Equal(t, kind, resp.Header.Get("Content-Type"))
					require.Equal(t, face.name, resp.Header.Get("X-Event"))
					require.NotEmpty(t, resp.Header.Get("X-Request"))
					require.Equal(t, []string{"a=1", "b=2"}, resp.Header.Values("Set-Cookie"))
				}
				resp, got, err := get("GET", "/panic", "", "")
				require.NoError(t, err)
				require.Equal(t, 500, resp.StatusCode)
				require.JSONEq(t, `{"status":"error","errorType":"internal","error":"handler panicked: early"}`, got)
				resp, _, err = get("GET", "/none", "", "")
				require.NoError(t, err)
				require.Equal(t, 404, resp.StatusCode)

				resp, got, err = get("GET", "/large/8000000", "", "")
				require.NoError(t, err)
				if mode == "streaming" && face.name == string(FunctionURL) {
					require.Equal(t, 200, resp.StatusCode)
					require.Len(t, got, 8_000_000)
				} else {
					require.Equal(t, 422, resp.StatusCode)
					require.Contains(t, got, "6291556 bytes that AWS Lambda accepts without streaming")
				}
			})
		}
		_, err := f.Invoke(t.Context(), recorded(t, "eventbridge-rule"))
		var fe *emulator.FunctionError
		require.ErrorAs(t, err, &fe)
		require.Equal(t, "no luck", fe.Message)
		_, err = f.Invoke(t.Context(), recorded(t, "sqs-fifo"))
		require.ErrorAs(t, err, &fe)
		require.Contains(t, fe.Message, "event is not supported: sqs; this function supports HTTP requests")
		require.Len(t, f.ColdStarts(), 1, "no error ends the process")
	}
}

func TestStreamIsRead(t *testing.T) {
	t.Parallel() // it waits for 15 of the 20 seconds
	f := lambdatest.Start(t, emulator.Settings{Path: self(t), Env: []string{envBootstrap + "=streaming"}, Timeout: 20 * time.Second})
	s, err := f.InvokeStream(t.Context(), []byte(strings.Replace(string(recorded(t, "function-url-query")), `"/api/v1/query"`, `"/endless"`, 1)))
	require.NoError(t, err)
	require.Equal(t, 200, s.Prelude.StatusCode)
	first := make([]byte, 5)
	_, err = io.ReadFull(s.Body, first)
	require.NoError(t, err)
	require.Equal(t, "first", string(first), "before the handler has ended")
	rest, err := io.ReadAll(s.Body)
	require.NoError(t, err)
	require.Equal(t, "; then context deadline exceeded", string(rest), "there is time for an error")
}

func TestStreamBreaksOff(t *testing.T) {
	f := lambdatest.Start(t, emulator.Settings{Path: self(t), Env: []string{envBootstrap + "=streaming"}})
	url := func(path string) (*emulator.Stream, error) {
		return f.InvokeStream(t.Context(), []byte(strings.Replace(string(recorded(t, "function-url-query")), `"/api/v1/query"`, `"`+path+`"`, 1)))
	}
	for path, want := range map[string]string{"/panic/late": "handler panicked: late", "/large/10000000": "answer is larger than AWS Lambda takes"} {
		s, err := url(path)
		require.NoError(t, err)
		require.Equal(t, 200, s.Prelude.StatusCode)
		_, err = io.ReadAll(s.Body)
		var fe *emulator.FunctionError
		require.ErrorAs(t, err, &fe, path)
		require.Contains(t, fe.Message, want)
	}
	_, _, err := client(t, &emulator.URL{Function: f, Stream: true})("GET", "/panic/late", "", "")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a client sees that something is missing")

	s, err := url("/large/9000000")
	require.NoError(t, err)
	require.NoError(t, s.Body.Close(), "a client that goes away ends nothing but its own answer")
	s, err = url("/large/10")
	require.NoError(t, err)
	got, err := io.ReadAll(s.Body)
	require.NoError(t, err)
	require.Len(t, got, 10)
	require.Len(t, f.ColdStarts(), 1)
}

func TestConcurrentInvocations(t *testing.T) {
	f := lambdatest.Start(t, emulator.Settings{Path: self(t), Env: []string{envBootstrap + "=whole"}, Concurrency: 2})
	payload := []byte(strings.Replace(string(recorded(t, "http-api-query")), `"/api/v1/query"`, `"/meet"`, 1))
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := f.Invoke(t.Context(), payload)
			done <- err
		}()
	}
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Len(t, f.ColdStarts(), 1)
}

func TestSIGTERM(t *testing.T) {
	goodbye := t.TempDir() + "/goodbye"
	// The race detector waits a second before it lets a process end.
	f := lambdatest.Start(t, emulator.Settings{Path: self(t), Env: []string{envBootstrap + "=whole", envGoodbye + "=" + goodbye, "GORACE=atexit_sleep_ms=0"}})
	_, err := f.Invoke(t.Context(), recorded(t, "http-api-query"))
	require.NoError(t, err)
	require.NoError(t, f.Stop())
	b, err := os.ReadFile(goodbye)
	require.NoError(t, err)
	require.Equal(t, "goodbye", string(b))
}

func TestServeOutsideOfLambda(t *testing.T) {
	require.False(t, Running())
	require.ErrorIs(t, Serve(t.Context(), Handlers{}, settings.Default[Settings](), slog.New(slog.DiscardHandler)), ErrNotInLambda)
	t.Setenv("AWS_LAMBDA_RUNTIME_API", "127.0.0.1:1")
	require.True(t, Running())
	require.ErrorContains(t, Serve(t.Context(), Handlers{}, Settings{}, slog.New(slog.DiscardHandler)), "check settings: ")
}

func TestEnvironment(t *testing.T) {
	require.Zero(t, MemoryBytes())
	require.Equal(t, 1, Concurrency())
	t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1769")
	require.EqualValues(t, 1769<<20, MemoryBytes())
	t.Setenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "x")
	require.Zero(t, MemoryBytes())
}
