package auth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
)

// only returns a document of one token.
func only(t *testing.T, token string) []byte {
	t.Helper()
	e, err := auth.NewEntry(token, []string{"a"}, []string{"read"}, "")
	require.NoError(t, err)
	text, err := auth.Document{Version: auth.Version, Tokens: []auth.Entry{e}}.Text()
	require.NoError(t, err)
	return text
}

// replace replaces a file as promlake token and deployments do.
func replace(t *testing.T, file string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(file+".new", text, 0o600))
	require.NoError(t, os.Rename(file+".new", file))
}

func TestFileIsReadAgainWhenItChanges(t *testing.T) {
	var log bytes.Buffer
	g, file, _ := newGuard(t, only(t, "one"), &log)
	check := func(one, two int) {
		t.Helper()
		require.Equal(t, one, ask(g, auth.Read, "one"))
		require.Equal(t, two, ask(g, auth.Read, "two"))
	}
	check(200, 401)
	replace(t, file, only(t, "two"))
	check(401, 200)
	require.Contains(t, log.String(), "read changed document of tokens")

	log.Reset()
	replace(t, file, []byte(`{"version":1,"tokens":[{}]}`))
	check(401, 200)
	require.Contains(t, log.String(), "entry 1: sha256")
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("\n")), "told once")

	log.Reset()
	require.NoError(t, os.Remove(file))
	check(401, 200)
	check(401, 200)
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("document of tokens does not exist")))

	replace(t, file, only(t, "one"))
	check(200, 401)
}

func TestFileThatIsWrongAtTheStart(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte(`{"version":1,"tokens":[{}]}`), 0o600))
	for file, want := range map[string]string{bad: "entry 1: sha256", filepath.Join(dir, "none.json"): "no such file"} {
		_, err := auth.New(auth.Settings{Tokens: "file:" + file}, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
		require.ErrorContains(t, err, want)
	}
}

// parameter is a remote document with a fake of its source and a clock.
type parameter struct {
	text  []byte
	err   error
	reads int
	clock time.Time
	block chan struct{} // not nil: reads wait for it
	begun chan struct{} // takes a value when a read begins
}

func newParameter(text []byte) *parameter {
	return &parameter{text: text, clock: time.Unix(1e9, 0), begun: make(chan struct{}, 100)}
}

func (p *parameter) Read(ctx context.Context) (string, error) {
	p.reads++
	p.begun <- struct{}{}
	if p.block != nil {
		<-p.block
	}
	if _, ok := ctx.Deadline(); !ok {
		return "", errors.New("a read wants a deadline")
	}
	return string(p.text), p.err
}

func (*parameter) String() string { return "ssm:test" }

func (p *parameter) guard(log *bytes.Buffer) *auth.Guard {
	return auth.NewRemote(p, slog.New(slog.NewTextHandler(log, nil)), func() time.Time { return p.clock })
}

func TestRemoteDocument(t *testing.T) {
	var log bytes.Buffer
	p := newParameter(only(t, "one"))
	g := p.guard(&log)
	require.Zero(t, p.reads, "read lazily")
	check := func(reads, one, two int) {
		t.Helper()
		require.Equal(t, one, ask(g, auth.Read, "one"), "one")
		require.Equal(t, two, ask(g, auth.Read, "two"), "two")
		require.Equal(t, reads, p.reads, "reads")
	}
	check(1, 200, 401)

	p.text = only(t, "two")
	p.clock = p.clock.Add(9 * time.Second)
	check(1, 200, 401)
	p.clock = p.clock.Add(time.Second)
	check(2, 200, 200) // the unknown token causes a read; "one" came before

	check(2, 401, 200)
	p.clock = p.clock.Add(10 * time.Second)
	check(3, 401, 200)

	// A revoked token remains valid until the document is read again.
	p.text = only(t, "one")
	p.clock = p.clock.Add(5*time.Minute - time.Second)
	require.Equal(t, 200, ask(g, auth.Read, "two"))
	require.Equal(t, 3, p.reads)
	p.clock = p.clock.Add(time.Second)
	require.Equal(t, 401, ask(g, auth.Read, "two"))
	require.Equal(t, 4, p.reads)

	// While it cannot be read, the previous document remains valid, and is not read more often.
	p.err = errors.New("throttled")
	p.clock = p.clock.Add(time.Hour)
	check(5, 200, 401)
	require.Contains(t, log.String(), "throttled")
	p.clock = p.clock.Add(10 * time.Second)
	check(6, 200, 401)
	p.err, p.text = nil, []byte("{}")
	p.clock = p.clock.Add(10 * time.Second)
	check(7, 200, 401)
}

// TestRemotePrincipal: a principal that the document does not have causes a read, as a token does.
func TestRemotePrincipal(t *testing.T) {
	p := newParameter(only(t, "one"))
	g := p.guard(&bytes.Buffer{})
	ask := func() int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		w := httptest.NewRecorder()
		g.Protect(auth.Read, seen).ServeHTTP(w, r.WithContext(auth.WithPrincipal(r.Context(), "arn:aws:sts::123456789012:assumed-role/x/s")))
		return w.Code
	}
	require.Equal(t, http.StatusForbidden, ask())
	p.text = []byte(`{"version":1,"tokens":[{"principal":"arn:aws:iam::123456789012:role/x","tenants":["a"],"access":["read"]}]}`)
	require.Equal(t, http.StatusForbidden, ask())
	p.clock = p.clock.Add(10 * time.Second)
	require.Equal(t, http.StatusOK, ask())
	require.Equal(t, 2, p.reads)
	p.err = errors.New("throttled")
	p.clock = p.clock.Add(time.Hour)
	require.Equal(t, http.StatusOK, ask(), "the last document holds")
}

func TestRemoteDocumentThatWasNeverRead(t *testing.T) {
	var log bytes.Buffer
	p := newParameter(only(t, "one"))
	p.err = errors.New("access denied to arn:secret")
	g := p.guard(&log)
	for _, access := range []auth.Access{auth.Read, auth.Write} {
		w := answer(g, access, "one")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), "the document of tokens cannot be read, try again")
		require.NotContains(t, w.Body.String(), "arn:secret")
	}
	require.Equal(t, 1, p.reads, "not asked for again at once")
	require.Contains(t, log.String(), "arn:secret")
	p.err = nil
	require.Equal(t, 503, ask(g, auth.Read, "one"))
	p.clock = p.clock.Add(time.Second)
	require.Equal(t, 200, ask(g, auth.Read, "one"))
	require.Equal(t, 2, p.reads)
}

// TestRemoteReadKeepsNobodyWithAKnownToken: only requests with unknown tokens wait for a read.
func TestRemoteReadKeepsNobodyWithAKnownToken(t *testing.T) {
	var log bytes.Buffer
	p := newParameter(only(t, "one"))
	g := p.guard(&log)
	require.Equal(t, 200, ask(g, auth.Read, "one"))
	<-p.begun

	p.text, p.block = only(t, "two"), make(chan struct{})
	p.clock = p.clock.Add(time.Hour)
	codes := make(chan int, 3)
	for range 3 {
		go func() { codes <- ask(g, auth.Read, "two") }()
	}
	<-p.begun
	require.Equal(t, 200, ask(g, auth.Read, "one"), "while the read is under way")
	close(p.block)
	for range 3 {
		require.Equal(t, 200, <-codes)
	}
	require.Equal(t, 2, p.reads, "one read serves all")
}
