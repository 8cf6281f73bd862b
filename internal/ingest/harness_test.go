package ingest

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// lake is a stage over a store in memory, reached through its handler.
type lake struct {
	t      *testing.T
	store  *memstore.Store
	faults memstore.Script
	queue  *memqueue.Queue // mode Buffered: its messages are consumed after every request
	qfault memqueue.Script
	stage  *Stage
	now    func() time.Time
	later  atomic.Int64 // ns, added to now; a flusher reads the clock behind the answer
	manual bool         // messages stay on the queue until consume is called
	log    bytes.Buffer // errors
}

// quick are settings under which a lone request is flushed at once.
func quick() Settings {
	s := DefaultSettings()
	s.FlushInterval = 1
	return s
}

func newLake(t *testing.T, set Settings, now func() time.Time) *lake {
	t.Helper()
	return newLakeThrough(t, set, now, func(s objstore.Store) objstore.Store { return s })
}

// newLakeThrough is newLake for a stage that reaches the store through another one.
func newLakeThrough(t *testing.T, set Settings, now func() time.Time, through func(objstore.Store) objstore.Store, opts ...Option) *lake {
	t.Helper()
	l := &lake{t: t}
	l.now = func() time.Time { return now().Add(time.Duration(l.later.Load())) }
	if set.Mode == Buffered {
		set.QueueURL = "memory"
		l.queue = memqueue.New(memqueue.Settings{Now: l.now, Faults: l.qfault.Next})
		opts = append(opts, To(l.queue))
	}
	l.store = memstore.New(memstore.Settings{Now: l.now, Faults: l.faults.Next, Immutable: func(k string) bool { return !isPush(k) }, DeletedForever: true})
	var err error
	l.stage, err = New(set, through(l.store), prometheus.NewRegistry(), slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelError})), l.now, opts...)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		require.NoError(t, l.stage.Close(ctx))
		require.Empty(t, l.store.Violations())
	})
	return l
}

// calm is a lake whose clock stands at someTime.
func calm(t *testing.T) *lake { return calmIn(t, Grouped) }

func calmIn(t *testing.T, mode Mode) *lake {
	return calmWith(t, mode, quick())
}

func calmWith(t *testing.T, mode Mode, set Settings) *lake {
	set.Mode = mode
	return newLake(t, set, func() time.Time { return time.UnixMilli(someTime) })
}

// tick advances the clock by more than mode Direct tolerates: requests after it have a later write
// time.
func (l *lake) tick() { l.later.Add(int64(time.Minute)) }

// post sends a body as it is and returns the answer. Headers are pairs; an empty value removes one.
func (l *lake) post(body []byte, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "snappy")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return l.serve(r)
}

func (l *lake) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	l.stage.Handler().ServeHTTP(w, r)
	if l.queue != nil && !l.manual {
		require.Empty(l.t, l.consume(), "%s", &l.log)
	}
	return w
}

// consume receives all messages of the queue, as a function does that the queue invokes, and
// returns the messages that failed. Those are on the queue again.
func (l *lake) consume() (failed []string) {
	l.t.Helper()
	ctx := context.Background()
	var all []queue.Received
	for {
		ms, err := l.queue.Receive(ctx, queue.MaxBatch, 0, time.Minute)
		require.NoError(l.t, err)
		if len(ms) == 0 {
			break
		}
		all = append(all, ms...)
	}
	failed, err := l.stage.Consume(ctx, all)
	require.NoError(l.t, err)
	for _, m := range all {
		if slices.Contains(failed, m.ID) {
			require.NoError(l.t, l.queue.Release(ctx, 0, m))
		} else {
			require.NoError(l.t, l.queue.Delete(ctx, m))
		}
	}
	return failed
}

const contentV2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"

// send encodes items in a protocol version and posts them.
func (l *lake) send(version protocol, items []item, headers ...string) *httptest.ResponseRecorder {
	if version == protocolV2 {
		return l.post(packed(l.t, encodeV2(items)), append([]string{"Content-Type", contentV2}, headers...)...)
	}
	return l.post(packed(l.t, encodeV1(items)), headers...)
}

// ok sends items and requires success.
func (l *lake) ok(version protocol, items []item, headers ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	w := l.send(version, items, headers...)
	require.Equal(l.t, http.StatusNoContent, w.Code, w.Body.String())
	return w
}

// read returns the content of a tenant's segments, by series. It checks each segment on the way.
func (l *lake) read(tenantID string) map[string]content {
	l.t.Helper()
	floats, hists, exemplars := map[string]map[int64]string{}, map[string]map[int64]string{}, map[string]map[string]bool{}
	for _, k := range l.keys(tenantID) {
		for _, r := range l.rows(k) {
			name := r.Labels.String()
			put(floats, name)
			put(hists, name)
			put(exemplars, name)
			for _, f := range r.Floats {
				floats[name][f.T] = floatText(f)
			}
			for _, h := range r.Hists {
				hists[name][h.T] = histText(l.t, h)
			}
			for _, e := range r.Exemplars {
				exemplars[name][exemplarText(e)] = true
			}
		}
	}
	out := map[string]content{}
	for name := range floats {
		c := content{Floats: inOrder(floats[name]), Hists: inOrder(hists[name])}
		for e := range exemplars[name] {
			c.Exemplars = append(c.Exemplars, e)
		}
		slices.Sort(c.Exemplars)
		out[name] = c
	}
	return out
}

func put[K comparable, V any](m map[string]map[K]V, name string) {
	if m[name] == nil {
		m[name] = map[K]V{}
	}
}

func inOrder(m map[int64]string) []string {
	var times []int64
	for t := range m {
		times = append(times, t)
	}
	slices.Sort(times)
	var out []string
	for _, t := range times {
		out = append(out, m[t])
	}
	return out
}

// keys returns a tenant's segments, by window and time of writing.
func (l *lake) keys(tenantID string) []key.Segment {
	l.t.Helper()
	var out []key.Segment
	for _, k := range l.store.Keys() {
		if isPush(k) {
			continue
		}
		s, err := key.ParseSegment(k)
		require.NoError(l.t, err)
		if s.Tenant == tenantID {
			out = append(out, s)
		}
	}
	return out
}

// isPush reports whether a key is that of the state of a group of pushed metrics, the only objects
// that change.
func isPush(k string) bool {
	_, _, err := key.ParsePush(k)
	return err == nil
}

// windows returns the windows of a tenant's segments, one for each segment.
func (l *lake) windows(tenantID string) []string {
	var out []string
	for _, k := range l.keys(tenantID) {
		out = append(out, k.Window.String())
	}
	return out
}

func (l *lake) object(k key.Segment) []byte {
	l.t.Helper()
	r, _, err := l.store.Get(context.Background(), k.String(), 0, -1)
	require.NoError(l.t, err)
	b, err := io.ReadAll(r)
	require.NoError(l.t, err)
	require.NoError(l.t, r.Close())
	return b
}

func (l *lake) info(k key.Segment) segment.Info {
	l.t.Helper()
	b := l.object(k)
	info, err := segment.ReadInfo(bytes.NewReader(b), int64(len(b)))
	require.NoError(l.t, err)
	return info
}

// rows reads a segment and checks that it keeps the format's promises.
func (l *lake) rows(k key.Segment) []segment.Row {
	l.t.Helper()
	rows, err := segmenttest.Rows(l.object(k))
	require.NoError(l.t, err)
	in := func(t int64) { require.Equal(l.t, k.Window, key.WindowOf(t), "time %d in %s", t, k) }
	for i, r := range rows {
		require.NotEmpty(l.t, len(r.Floats)+len(r.Hists)+len(r.Exemplars), "%s in %s", r.Labels, k)
		require.Empty(l.t, i > 0 && rowOrder(rows[i-1].Labels, r.Labels) >= 0, "rows of %s are not sorted", k)
		for j, f := range r.Floats {
			in(f.T)
			require.True(l.t, j == 0 || r.Floats[j-1].T < f.T)
		}
		for j, h := range r.Hists {
			in(h.T)
			require.True(l.t, j == 0 || r.Hists[j-1].T < h.T)
		}
		for j, e := range r.Exemplars {
			in(e.Ts)
			require.True(l.t, j == 0 || r.Exemplars[j-1].Ts <= e.Ts)
		}
	}
	return rows
}

func rowOrder(a, b labels.Labels) int {
	if c := strings.Compare(a.Get(model.MetricNameLabel), b.Get(model.MetricNameLabel)); c != 0 {
		return c
	}
	rest := func(l labels.Labels) labels.Labels { return labels.NewBuilder(l).Del(model.MetricNameLabel).Labels() }
	return labels.Compare(rest(a), rest(b))
}

// inflight is what all requests are charged.
func (l *lake) inflight() int64 {
	return int64(testutil.ToFloat64(l.stage.met.inflightBytes))
}

// undisclosed requires an answer that names a line of the log, and the cause only in that line.
func (l *lake) undisclosed(answer, cause string) {
	l.t.Helper()
	found := regexp.MustCompile(`^samples could not be stored, try again \(the log has the cause under reference ([0-9a-f]{12})\)\n$`).FindStringSubmatch(answer)
	require.NotNil(l.t, found, answer)
	for line := range strings.Lines(l.log.String()) {
		if strings.Contains(line, "reference="+found[1]) {
			require.Contains(l.t, line, cause)
			return
		}
	}
	require.Fail(l.t, "the log has no such reference", "%s\n%s", answer, &l.log)
}

// discarded is the counter of refused samples.
func (l *lake) discarded(r remotewrite.Reason) float64 {
	return testutil.ToFloat64(l.stage.met.discarded.WithLabelValues(string(r)))
}

var protocols = []protocol{protocolV1, protocolV2}

// inBoth runs a test in both protocol versions.
func inBoth(t *testing.T, run func(t *testing.T, version protocol)) {
	for _, v := range protocols {
		t.Run("protocol="+v.String(), func(t *testing.T) { run(t, v) })
	}
}

var modes = []Mode{Grouped, Direct, Buffered}

// inAll runs a test in all modes and both protocol versions.
func inAll(t *testing.T, run func(t *testing.T, mode Mode, version protocol)) {
	for _, m := range modes {
		t.Run("mode="+string(m), func(t *testing.T) {
			inBoth(t, func(t *testing.T, version protocol) { run(t, m, version) })
		})
	}
}

// bubble runs a test in a synctest bubble and reads the lake's contents after the bubble, because
// the Parquet reader keeps goroutines of its own.
func bubble(t *testing.T, run func(t *testing.T) (l *lake, want map[string]content)) {
	t.Helper()
	var l *lake
	var want map[string]content
	synctest.Test(t, func(t *testing.T) { l, want = run(t) })
	require.NotNil(t, l, "the bubble failed")
	l.t = t
	require.Equal(t, want, l.read(anonymous))
}

const anonymous = tenant.Default
