package process_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/selfwrite"
)

// logged is a log that is read while it is written.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(p) }
func (l *logged) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// tokens writes a document that knows the token "operator".
func tokens(t *testing.T) string {
	t.Helper()
	e, err := auth.NewEntry("operator", []string{"*"}, []string{"admin"}, "")
	require.NoError(t, err)
	text, err := auth.Document{Version: auth.Version, Tokens: []auth.Entry{e}}.Text()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "tokens.json")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return "file:" + file
}

// TestRunWarnsWhereAnybodyIsAnswered: a process that needs no token from other machines logs one
// warning, and no other process does.
func TestRunWarnsWhereAnybodyIsAnswered(t *testing.T) {
	for name, tc := range map[string]struct {
		listen string
		auth   bool
		warns  int
	}{
		"this machine only": {"127.0.0.1:0", false, 0},
		"all":               {"0.0.0.0:0", false, 1},
		"all, with a token": {"0.0.0.0:0", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings(t)
			s.Listen = tc.listen
			if tc.auth {
				s.Auth.Tokens = tokens(t)
			}
			log := &logged{}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			f := newFakeStage()
			go func() {
				done <- process.Run(ctx, s, slog.New(slog.NewTextHandler(log, nil)), func(_ context.Context, p process.Parts) (process.Stage, error) {
					go func() { <-p.Ready; cancel() }()
					return f, nil
				})
			}()
			require.NoError(t, <-done)
			require.Equal(t, tc.warns, bytes.Count([]byte(log.String()), []byte("without a token")), log.String())
		})
	}
}

func TestRunGuardsStagesAndMetrics(t *testing.T) {
	s := settings(t)
	s.Auth.Tokens = tokens(t)
	f := newFakeStage()
	r := run(t, s, f)
	for path, want := range map[string]int{"/-/healthy": 200, "/-/ready": 200, "/metrics": 401, "/wait": 401, "/nothing": 404} {
		code, _ := get(t, f.parts.URL+path)
		require.Equal(t, want, code, path)
	}
	ask := func(path, token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.parts.URL+path, nil)
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	require.Equal(t, 200, ask("/metrics", "operator"))
	require.Equal(t, 200, ask("/api/v1/status/tokens", "operator"))
	require.Equal(t, 401, ask("/api/v1/status/tokens", ""))
	require.Equal(t, 200, ask("/metrics", f.parts.Token), "a process may ask itself")
	require.Equal(t, 403, ask("/wait", "operator"))
	select {
	case <-f.entered:
		t.Fatal("a request reached the stage")
	default:
	}
	r.stop()
	require.NoError(t, <-r.done)
}

func TestRunWithSettingsOfOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*process.Settings)
		want   string
	}{
		"no source of tokens": {func(s *process.Settings) { s.Auth.Tokens = "{}" }, "check settings: auth.tokens: want file:PATH or ssm:NAME"},
		"no such file":        {func(s *process.Settings) { s.Auth.Tokens = "file:/nonexistent/tokens.json" }, "start: read document of tokens: "},
		"no write stage":      {func(s *process.Settings) { s.Self.URL = selfwrite.Here }, "self.url: here is for processes that have a write stage"},
		"no URL":              {func(s *process.Settings) { s.Self.URL = "there" }, "check settings: self.url: "},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings(t)
			tc.change(&s)
			f := newFakeStage()
			require.ErrorContains(t, process.Run(t.Context(), s, slog.New(slog.DiscardHandler), f.build), tc.want)
		})
	}
}

// writes is a stage that accepts remote_write requests and reports each of them.
type writes struct {
	*fakeStage
	took chan http.Header
}

func (w writes) Routes() []process.Route {
	return []process.Route{{Pattern: "/api/v1/write", Access: auth.Write, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.note("write")
		w.took <- r.Header
		rw.WriteHeader(http.StatusNoContent)
	})}}
}

// TestRunWritesItsLastMetricsBeforeItDrains holds that the write stage still takes them.
func TestRunWritesItsLastMetricsBeforeItDrains(t *testing.T) {
	s := settings(t)
	s.Auth.Tokens = tokens(t)
	s.Self.URL, s.Self.Interval = selfwrite.Here, time.Hour
	w := writes{newFakeStage(), make(chan http.Header, 10)}
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, process.Run(ctx, s, slog.New(slog.DiscardHandler), func(_ context.Context, p process.Parts) (process.Stage, error) {
		go func() { <-p.Ready; cancel() }()
		return w, nil
	}))
	require.Equal(t, []string{"write", "drain", "close"}, w.events)
	require.Equal(t, "promlake", (<-w.took).Get("X-Scope-OrgID"))
}
