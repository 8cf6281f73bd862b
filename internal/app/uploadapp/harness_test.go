package uploadapp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

const name = "team-a"

// begin is that of the histories, and the store's clock is three days later.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// hours is a time in ms.
func hours(n float64) int64 { return begin.UnixMilli() + int64(n*3600_000) }

// clock is a store's.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time         { return begin.Add(72*time.Hour + time.Duration(c.ahead.Load())) }
func (c *clock) pass(d time.Duration)   { c.ahead.Add(int64(d)) }
func newStore(c *clock) *memstore.Store { return memstore.New(memstore.Settings{Now: c.now}) }

// block is a block as a client sends it.
type block struct {
	id    string
	meta  []byte
	files map[string][]byte
}

// read reads a block of a directory, and lists its files in its meta.json as mimirtool does.
func read(t *testing.T, dir string) block {
	t.Helper()
	b := block{id: filepath.Base(dir), files: map[string][]byte{}}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path) // path is below dir
		b.files[filepath.ToSlash(rel)] = raw
		return err
	}))
	b.meta = b.files["meta.json"]
	delete(b.files, "meta.json")
	var meta map[string]any
	require.NoError(t, json.Unmarshal(b.meta, &meta))
	list := []any{map[string]any{"rel_path": "meta.json"}}
	for path, raw := range b.files {
		list = append(list, map[string]any{"rel_path": path, "size_bytes": len(raw)})
	}
	meta["thanos"] = map[string]any{"files": list, "labels": map[string]string{}}
	var err error
	b.meta, err = json.Marshal(meta)
	require.NoError(t, err)
	return b
}

// history writes a block of 30 hours with all kinds of samples, of which a part is deleted. It
// returns the directory.
func history(t *testing.T) string {
	t.Helper()
	dir := promblocktest.Write(t, t.TempDir(), hours(0), hours(30), promblocktest.History(1, hours(0), 30*time.Hour))
	b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), dir, nil, nil)
	require.NoError(t, err)
	require.NoError(t, b.Delete(t.Context(), hours(27), hours(28), labels.MustNewMatcher(labels.MatchEqual, "instance", "b")))
	require.NoError(t, b.Close())
	return dir
}

// smallSamples are in a block of small.
const smallSamples = 6

// small writes a block of one series in two windows of two hours.
func small(t *testing.T, metric string) block {
	t.Helper()
	s := promblocktest.Series{Labels: labels.FromStrings("__name__", metric)}
	for i := range int64(smallSamples) {
		s.Samples = append(s.Samples, promblocktest.Sample{Time: hours(1) + i*20*60_000, V: float64(i)})
	}
	return read(t, promblocktest.Write(t, t.TempDir(), hours(0), hours(24), []promblocktest.Series{s}))
}

// server is a process with uploads.
type server struct {
	t     *testing.T
	url   string
	mux   *http.ServeMux
	stage process.Stage
	reg   *prometheus.Registry
	kill  func()
}

type options struct {
	settings uploadapp.Settings
	imports  importapp.Settings
	memory   *memory.Budget
	log      io.Writer
	grace    time.Duration // of bodies
	now      func() time.Time
}

// pauses are those between the attempts of an import.
var pauses = []time.Duration{time.Millisecond, time.Millisecond, time.Millisecond}

// serve starts a process over a store.
func serve(t *testing.T, store objstore.Store, change ...func(*options)) *server {
	t.Helper()
	o := options{settings: settings.Default[uploadapp.Settings](), imports: settings.Default[importapp.Settings](), log: io.Discard, grace: time.Minute, now: time.Now}
	o.settings.Enabled, o.imports.Level, o.imports.TempDir = true, "2h", t.TempDir()
	for _, f := range change {
		f(&o)
	}
	ready := make(chan struct{})
	close(ready)
	s := &server{t: t, reg: prometheus.NewRegistry()}
	var err error
	s.stage, err = uploadapp.NewWith(o.settings, o.imports, o.grace, pauses...)(t.Context(), process.Parts{
		Store: store, Registry: s.reg, Memory: o.memory, Logger: slog.New(slog.NewTextHandler(o.log, nil)), Now: o.now, Ready: ready,
	})
	require.NoError(t, err)
	s.mux = http.NewServeMux()
	for _, r := range s.stage.Routes() {
		s.mux.Handle(r.Pattern, r.Handler)
	}
	srv := httptest.NewServer(s.mux)
	s.url = srv.URL
	ended := false
	s.kill = func() {
		if !ended {
			ended = true
			srv.Close()
			require.NoError(t, s.stage.Drain(context.Background()))
			require.NoError(t, s.stage.Close())
			left, err := filepath.Glob(filepath.Join(o.imports.TempDir, "*"))
			require.NoError(t, err)
			left = slices.DeleteFunc(left, func(name string) bool { return strings.HasSuffix(name, ".lock") })
			require.Empty(t, left, "temporary files")
		}
	}
	t.Cleanup(s.kill)
	return s
}

// ask sends a request for a block, and returns the status and the text of the answer.
func (s *server) ask(method, id, what string, body []byte) (int, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+"/api/v1/upload/block/"+id+"/"+what, bytes.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set(tenant.Header, name)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, strings.TrimSpace(string(text))
}

// want sends a POST, and wants a status and a part of the answer.
func (s *server) want(status int, text, id, what string, body []byte) {
	s.t.Helper()
	code, got := s.ask(http.MethodPost, id, what, body)
	require.Equal(s.t, status, code, "%s: %s", what, got)
	require.Contains(s.t, got, text, what)
}

func files(path string) string { return "files?path=" + url.QueryEscape(path) }

// send starts an upload and sends all files.
func (s *server) send(b block) {
	s.t.Helper()
	s.want(200, "", b.id, "start", b.meta)
	for path, raw := range b.files {
		s.want(200, "", b.id, files(path), raw)
	}
}

// state returns the answer of check; "" if there is no upload.
func (s *server) state(id string) (result, reason string) {
	s.t.Helper()
	code, text := s.ask(http.MethodGet, id, "check", nil)
	if code == http.StatusNotFound {
		return "", ""
	}
	require.Equal(s.t, 200, code, text)
	var a struct{ Result, Error string }
	require.NoError(s.t, json.Unmarshal([]byte(text), &a), text)
	return a.Result, a.Error
}

// wait waits until an upload is no more validating.
func (s *server) wait(id string) (result, reason string) {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		result, reason = s.state(id)
		return result != "validating"
	}, 2*time.Minute, time.Millisecond)
	return result, reason
}

// upload uploads a whole block.
func (s *server) upload(b block) {
	s.t.Helper()
	s.send(b)
	s.want(200, "", b.id, "finish", nil)
	result, reason := s.wait(b.id)
	require.Equal(s.t, "complete", result, reason)
}

// samples are those of a store that count.
func samples(t *testing.T, store objstore.Store) compacttest.Answer {
	t.Helper()
	a, err := compacttest.Read(t.Context(), store, name)
	require.NoError(t, err)
	return a
}

// uploads are the keys below uploads/ of a store, without the prefix.
func uploads(store *memstore.Store) (out []string) {
	for _, k := range store.Keys() {
		if rest, ok := strings.CutPrefix(k, key.UploadsPrefix(name)); ok {
			out = append(out, rest)
		}
	}
	slices.Sort(out)
	return out
}
