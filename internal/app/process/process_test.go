package process_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
)

// fakeStage has a handler that answers only once the stage drains, as ingest does with what it
// buffers.
type fakeStage struct {
	parts   process.Parts
	entered chan struct{} // closed when a request waits
	drained chan struct{}
	stuck   bool // the request waits for its client instead

	mu     sync.Mutex
	events []string
}

func newFakeStage() *fakeStage {
	return &fakeStage{entered: make(chan struct{}), drained: make(chan struct{})}
}

func (f *fakeStage) build(_ context.Context, p process.Parts) (process.Stage, error) {
	f.parts = p
	return f, nil
}

func (f *fakeStage) note(event string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, event)
}

func (f *fakeStage) Routes() []process.Route {
	return []process.Route{{Pattern: "/wait", Name: "/wait", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(f.entered)
		if f.stuck {
			<-r.Context().Done()
		} else {
			<-f.drained
		}
		f.note("answer")
		w.WriteHeader(http.StatusNoContent)
	})}}
}

func (f *fakeStage) Drain(context.Context) error {
	f.note("drain")
	close(f.drained)
	return nil
}

func (f *fakeStage) Close() error {
	f.note("close")
	return nil
}

func settings(t *testing.T) process.Settings {
	t.Helper()
	s := process.DefaultSettings()
	s.Listen, s.Store = "127.0.0.1:0", "file://"+t.TempDir()
	return s
}

// running is a process that serves in the background.
type running struct {
	stop context.CancelFunc
	done chan error
}

// run starts a process and waits until its stage accepts requests.
func run(t *testing.T, s process.Settings, f *fakeStage) running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r := running{cancel, make(chan error, 1)}
	built := make(chan struct{})
	go func() {
		r.done <- process.Run(ctx, s, slog.New(slog.DiscardHandler), func(ctx context.Context, p process.Parts) (process.Stage, error) {
			defer close(built)
			return f.build(ctx, p)
		})
	}()
	<-built
	<-f.parts.Ready
	return r
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(body)
}

// answers is a stage that reads and writes one object.
func answers(_ context.Context, p process.Parts) (process.Stage, error) {
	return objects{Store: p.Store}, nil
}

type objects struct {
	process.Idle
	objstore.Store
}

func (o objects) Routes() []process.Route {
	return []process.Route{{Pattern: "/object", Name: "/object", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if r.Method == http.MethodPost {
			_, err = o.Put(r.Context(), "v1/a/x", strings.NewReader("x"), objstore.Condition{})
		} else {
			_, _, err = objstore.ReadAll(r.Context(), o.Store, "v1/a/x")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
		}
	})}}
}

// serve runs a process with the stage of objects, and returns a function that asks it.
func serve(t *testing.T, s process.Settings) func(method, path string) (int, string) {
	t.Helper()
	f := newFakeStage()
	ctx, cancel := context.WithCancel(context.Background())
	done, built := make(chan error, 1), make(chan struct{})
	go func() {
		done <- process.Run(ctx, s, slog.New(slog.DiscardHandler), answers, func(ctx context.Context, p process.Parts) (process.Stage, error) {
			defer close(built)
			return f.build(ctx, p)
		})
	}()
	t.Cleanup(func() { cancel(); require.NoError(t, <-done) })
	<-built
	<-f.parts.Ready
	return func(method, path string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, f.parts.URL+path, nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(body)
	}
}

// TestRunOverStoreThatTakesNoWrites: a process over a store whose disk is full starts and reads. It
// refuses writes until a check of the store has succeeded.
func TestRunOverStoreThatTakesNoWrites(t *testing.T) {
	s := settings(t)
	dir := strings.TrimPrefix(s.Store, "file://")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "v1/a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "v1/a/x"), []byte("x"), 0o600))
	blocked := filepath.Join(dir, ".tmp")
	require.NoError(t, os.WriteFile(blocked, nil, 0o600)) // stands where writes need a folder
	ask := serve(t, s)
	code, _ := ask(http.MethodGet, "/object")
	require.Equal(t, http.StatusOK, code)
	code, text := ask(http.MethodPost, "/object")
	require.Equal(t, http.StatusTeapot, code)
	require.Contains(t, text, objstore.ErrReadOnly.Error())
	code, text = ask(http.MethodGet, "/-/ready")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, objstore.ErrReadOnly.Error())
	require.NoError(t, os.Remove(blocked))
	require.Eventually(t, func() bool { code, _ := ask(http.MethodPost, "/object"); return code == http.StatusOK }, 2*time.Minute, 10*time.Millisecond)
	_, text = ask(http.MethodGet, "/-/ready")
	require.Equal(t, "Promlake is ready.\n", text)
}

// TestRunNoticesThatItsStoreIsGone: no request is answered as if the store were empty.
func TestRunNoticesThatItsStoreIsGone(t *testing.T) {
	s := settings(t)
	dir := strings.TrimPrefix(s.Store, "file://")
	ask := serve(t, s)
	code, _ := ask(http.MethodPost, "/object")
	require.Equal(t, http.StatusOK, code)
	require.NoError(t, os.Rename(dir, dir+".away"))
	for range 2 {
		for _, path := range []string{"/-/ready", "/object"} {
			code, text := ask(http.MethodGet, path)
			require.Equal(t, http.StatusServiceUnavailable, code, path)
			require.Contains(t, text, probe.ErrRoot.Error(), path)
		}
		code, _ := ask(http.MethodGet, "/-/healthy")
		require.Equal(t, http.StatusOK, code)
		code, text := ask(http.MethodGet, "/metrics")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, text, "\npromlake_objstore_refuses 2\n")
		require.NoError(t, os.MkdirAll(dir, 0o700)) // an empty one in its place
	}
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(dir+".away", dir))
	for _, path := range []string{"/-/ready", "/object"} {
		code, _ := ask(http.MethodGet, path)
		require.Equal(t, http.StatusOK, code, path)
	}
}

func TestRunAnswersPendingRequestsBeforeItEnds(t *testing.T) {
	f := newFakeStage()
	r := run(t, settings(t), f)

	for path, want := range map[string]int{"/-/healthy": 200, "/-/ready": 200, "/metrics": 200, "/nothing": 404} {
		code, _ := get(t, f.parts.URL+path)
		require.Equal(t, want, code, path)
	}
	status := make(chan int, 1)
	go func() {
		resp, err := http.Get(f.parts.URL + "/wait")
		if err != nil {
			t.Errorf("the pending request got no answer: %v", err)
			status <- 0
			return
		}
		_ = resp.Body.Close()
		status <- resp.StatusCode
	}()
	<-f.entered
	r.stop()
	require.NoError(t, <-r.done)
	require.Equal(t, http.StatusNoContent, <-status)
	require.Equal(t, []string{"drain", "answer", "close"}, f.events)
	_, err := http.Get(f.parts.URL + "/-/healthy")
	require.Error(t, err, "nobody listens any more")
}

func TestRunGivesUpOnRequestsAfterItsTimeout(t *testing.T) {
	s := settings(t)
	s.ShutdownTimeout = 10 * time.Millisecond
	f := newFakeStage()
	f.stuck = true
	r := run(t, s, f)
	go func() {
		if resp, err := http.Get(f.parts.URL + "/wait"); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-f.entered
	r.stop()
	err := <-r.done
	require.ErrorContains(t, err, "answer pending requests within 10ms")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRunMetricsNameTheHandlers(t *testing.T) {
	f := newFakeStage()
	r := run(t, settings(t), f)
	close(f.drained)
	code, _ := get(t, f.parts.URL+"/wait")
	require.Equal(t, http.StatusNoContent, code)
	_, text := get(t, f.parts.URL+"/metrics")
	require.Contains(t, text, `promlake_http_request_duration_seconds_count{code="204",handler="/wait",method="get"} 1`)
	require.Contains(t, text, "promlake_build_info{")
	require.Contains(t, text, "go_goroutines ")
	f.drained = make(chan struct{})
	r.stop()
	require.NoError(t, <-r.done)
}

func TestRunErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for _, tc := range []struct {
		name   string
		change func(*process.Settings)
		want   string
	}{
		{"taken address", func(s *process.Settings) { s.Listen = taken.Addr().String() }, "address already in use"},
		{"bad address", func(s *process.Settings) { s.Listen = "nonsense" }, "open listener: "},
		{"bad store", func(s *process.Settings) { s.Store = "gopher://x?secret=1" }, "open store gopher://x: "},
		{"bad settings", func(s *process.Settings) { s.GCPercent = -1 }, "check settings: gc-percent: want at least 0, got -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := settings(t)
			tc.change(&s)
			err := process.Run(t.Context(), s, slog.New(slog.DiscardHandler))
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestRunClosesWhatItBuiltWhenALaterStageFails(t *testing.T) {
	f := newFakeStage()
	err := process.Run(t.Context(), settings(t), slog.New(slog.DiscardHandler), f.build,
		func(context.Context, process.Parts) (process.Stage, error) { return nil, errors.New("no luck") })
	require.ErrorContains(t, err, "start: no luck")
	require.Equal(t, []string{"drain", "close"}, f.events)
}

func TestOpen(t *testing.T) {
	f := newFakeStage()
	h, end, err := process.Open(t.Context(), settings(t), slog.New(slog.DiscardHandler), f.build)
	require.NoError(t, err)
	require.NotNil(t, h)
	require.NoError(t, end())
	require.Equal(t, []string{"drain", "close"}, f.events)
}

func TestSettingsValidate(t *testing.T) {
	require.NoError(t, process.DefaultSettings().Validate())
	err := process.Settings{MemoryLimit: -1}.Validate()
	for _, want := range []string{
		"listen: ", "store: ", "log.level: want one of debug, info, warn, error, got", "log.format: ", "http.read-header-timeout: ", "http.read-timeout: ", "http.idle-timeout: ", "http.write-stall-timeout: ", "web.max-connections: want at least 1, got 0", "shutdown-timeout: want more than 0, got 0s",
		"http.max-header-bytes: want at least 4KiB, got 0", "memory-limit: want at least 0, got -1",
	} {
		require.ErrorContains(t, err, want)
	}
}
