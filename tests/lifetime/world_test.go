package lifetime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// world is a store and the process over it.
type world struct {
	t       *testing.T
	set     app.Settings
	store   objstore.Store
	bucket  *memstore.Store // store, or nil: it is a directory
	handler http.Handler    // of the process
	finish  func() error    // ends the process

	mu    sync.Mutex
	last  time.Time                          // that now returned
	fault func(memstore.Call) memstore.Fault // of a bucket; nil: none
}

// newWorld returns a world over a bucket or a directory, without a process.
func newWorld(t *testing.T, x *target, bucket bool) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, set: app.DefaultSettings()}
	w.set.Process.Store, w.set.Process.CheckStore = "file://"+dir, false
	w.set.Prometheus.ConfigFile = x.config
	w.set.Prometheus.Queue.Dir = filepath.Join(t.TempDir(), "queue")
	w.set.Prometheus.GracePeriod = time.Second
	if bucket {
		w.bucket = memstore.New(memstore.Settings{
			Faults: w.faults, Resolution: time.Second,
			Immutable: func(k string) bool { return strings.Contains(k, "/segments/") || strings.Contains(k, "/blocks/") },
		})
		w.store = w.bucket
		return w
	}
	var err error
	w.store, err = filestore.New(dir)
	require.NoError(t, err)
	return w
}

func (w *world) faults(c memstore.Call) memstore.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault == nil {
		return memstore.Fault{}
	}
	return w.fault(c)
}

// now is the clock of the process. It passes by a nanosecond each time, because what follows
// something else is later.
func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := time.Now()
	if !t.After(w.last) {
		t = w.last.Add(1)
	}
	w.last = t
	return t
}

// inject replaces the faults.
func (w *world) inject(f func(memstore.Call) memstore.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// start starts a process.
func (w *world) start() {
	w.t.Helper()
	w.handler, w.finish = w.open(app.Builders(w.set, io.Discard)...)
}

// queryStage is the index of the query stage among the builders of a process. It opens DuckDB once
// the process is ready.
const queryStage = 1

// open opens stages over the store. None opens DuckDB ahead, whose threads would stop the clock.
func (w *world) open(builders ...process.Builder) (http.Handler, func() error) {
	w.t.Helper()
	never := make(chan struct{})
	for i, b := range builders {
		builders[i] = func(ctx context.Context, p process.Parts) (process.Stage, error) {
			p.Now = w.now
			if i == queryStage {
				p.Ready = never
			}
			if w.bucket != nil {
				p.Store = w.store
			}
			return b(ctx, p)
		}
	}
	h, end, err := process.Open(w.t.Context(), w.set.Process, slog.New(slog.DiscardHandler), builders...)
	require.NoError(w.t, err)
	return h, end
}

// stop ends the process in order.
func (w *world) stop() {
	w.t.Helper()
	require.NoError(w.t, w.finish())
	if w.bucket != nil {
		require.Empty(w.t, w.bucket.Violations())
	}
}

// abandon ends a process whose store fails and whose queue is a copy's original: nothing that it
// still does matters.
func (w *world) abandon(queue string) {
	_ = w.finish()
	w.set.Prometheus.Queue.Dir = queue
}

// copyQueue copies the queue on disk as a death of the process would leave it.
func (w *world) copyQueue() string {
	w.t.Helper()
	from, to := w.set.Prometheus.Queue.Dir, filepath.Join(w.t.TempDir(), "queue")
	files, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return to
	}
	require.NoError(w.t, err)
	require.NoError(w.t, os.MkdirAll(to, 0o700))
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // stored meanwhile
		}
		require.NoError(w.t, err)
		require.NoError(w.t, os.WriteFile(filepath.Join(to, f.Name()), b, 0o600))
	}
	return to
}

// quiet lets time pass until nothing is scraped in the next six seconds, which service discovery
// takes after a start, and until no rule has been evaluated or will be within a second.
func (w *world) quiet(x *target) {
	w.t.Helper()
	soon := func(series string, least time.Duration) bool {
		last := w.matrix(series+"[1m]", time.Now())
		require.NotEmpty(w.t, last, series)
		values := last[0].Values
		passed := time.Since(values[len(values)-1].Timestamp.Time()) % interval
		return passed < time.Second || interval-passed < least
	}
	for soon("up", 6*time.Second) || soon("v:max10m", time.Second) || soon("v:avg1m", time.Second) || soon("ALERTS", time.Second) {
		x.run(500 * time.Millisecond)
	}
}

// request sends a request to the process and returns the answer's body.
func (w *world) request(path string, form url.Values) []byte {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if form == nil {
		r.Method = http.MethodGet
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, r)
	require.Equal(w.t, http.StatusOK, rec.Code, "%s %s: %s", path, form, rec.Body)
	return rec.Body.Bytes()
}

// matrix answers an expression at a time.
func (w *world) matrix(expr string, at time.Time) model.Matrix {
	w.t.Helper()
	var out struct {
		Data struct{ Result model.Matrix }
	}
	require.NoError(w.t, json.Unmarshal(w.request("/api/v1/query", url.Values{"query": {expr}, "time": {stamp(at)}}), &out))
	slices.SortFunc(out.Data.Result, func(a, b *model.SampleStream) int { return strings.Compare(a.Metric.String(), b.Metric.String()) })
	return out.Data.Result
}

func stamp(at time.Time) string { return fmt.Sprintf("%.3f", float64(at.UnixMilli())/1000) }

// csv answers an SQL statement, by a process that only reads.
func (w *world) csv(statement string) string {
	w.t.Helper()
	h, end := w.open(queryapp.New(settings.Default[queryapp.Settings]()))
	defer func(before http.Handler) { w.handler = before; require.NoError(w.t, end()) }(w.handler)
	w.handler = h
	return string(w.request("/api/v1/sql", url.Values{"query": {statement}, "format": {"csv"}}))
}

// metric is the sum of a metric of the process.
func (w *world) metric(name string, having ...string) (sum float64) {
	w.t.Helper()
	for line := range bytes.Lines(w.request("/metrics", nil)) {
		rest, ok := bytes.CutPrefix(line, []byte(name))
		if !ok || rest[0] != '{' && rest[0] != ' ' || slices.ContainsFunc(having, func(s string) bool { return !bytes.Contains(rest, []byte(s)) }) {
			continue
		}
		fields := bytes.Fields(rest)
		v, err := strconv.ParseFloat(string(fields[len(fields)-1]), 64)
		require.NoError(w.t, err)
		sum += v
	}
	return sum
}

// segments returns how many live segments were written before a time.
func (w *world) segments(before time.Time) (n int) {
	w.t.Helper()
	snap, err := catalog.Take(w.t.Context(), w.store, tenant.Default, key.MinTime, key.MaxTime)
	require.NoError(w.t, err)
	for _, s := range snap.Segments {
		if s.ID.Timestamp().Before(before) {
			n++
		}
	}
	return n
}

// once fails if SQL has a sample twice, or other samples than PromQL. It returns the samples.
func (w *world) once(at time.Time, from time.Duration) model.Matrix {
	w.t.Helper()
	all := w.matrix(fmt.Sprintf(`{__name__=~".+"}[%dms]`, from.Milliseconds()), at)
	n := 0
	for _, s := range all {
		for i, p := range s.Values {
			require.True(w.t, i == 0 || s.Values[i-1].Timestamp < p.Timestamp, "%s", s.Metric)
		}
		n += len(s.Values)
	}
	require.NotZero(w.t, n)
	statement := fmt.Sprintf(`SELECT count(*) AS n, count(DISTINCT (metric, labels::VARCHAR, ts)) AS each
		FROM samples WHERE ts > make_timestamptz(%d) AND ts <= make_timestamptz(%d)`, 1000*(at.UnixMilli()-from.Milliseconds()), 1000*at.UnixMilli())
	require.Equal(w.t, fmt.Sprintf("n,each\n%d,%d\n", n, n), strings.ReplaceAll(w.csv(statement), "\r", ""))
	return all
}
