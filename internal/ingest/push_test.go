package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/senders/push"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

const pushPrefix = "/metrics/"

// pushed sends a request for a group and returns the answer.
func (l *lake) pushed(method, group, body string, headers ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	r := httptest.NewRequest(method, pushPrefix+group, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	l.stage.PushHandler(pushPrefix).ServeHTTP(w, r)
	if l.queue != nil && !l.manual {
		require.Empty(l.t, l.consume(), "%s", &l.log)
	}
	return w
}

// series returns what is stored, as lines of labels, and value @ ms after someTime for each sample.
func (l *lake) series() (out []string) {
	l.t.Helper()
	samples := map[string]map[int64]string{}
	for _, k := range l.keys(anonymous) {
		for _, r := range l.rows(k) {
			name := r.Labels.String()
			put(samples, name)
			for _, f := range r.Floats {
				samples[name][f.T] = fmt.Sprintf("%v@%d", f.V, f.T-someTime)
				if value.IsStaleNaN(f.V) {
					samples[name][f.T] = fmt.Sprintf("end@%d", f.T-someTime)
				}
			}
			for _, h := range r.Hists {
				samples[name][h.T] = fmt.Sprintf("histogram of %d@%d", h.H.Count, h.T-someTime)
				if value.IsStaleNaN(h.H.Sum) {
					samples[name][h.T] = fmt.Sprintf("end of histogram@%d", h.T-someTime)
				}
			}
		}
	}
	for name, byTime := range samples {
		if !strings.Contains(name, "_time_seconds") {
			out = append(out, name+" "+strings.Join(inOrder(byTime), " "))
		}
	}
	slices.Sort(out)
	return out
}

// second moves the clock on.
func (l *lake) second() { l.later.Add(int64(time.Second)) }

// TestPushes: PUT replaces a group, POST what has the same names, DELETE ends it; each in all
// modes.
func TestPushes(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			l := calmIn(t, mode)
			for _, step := range []struct {
				method, body string
				code         int
			}{
				{http.MethodPut, "# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\",job=\"other\"} 2\nb 3\n", 200},
				{http.MethodPost, "# TYPE a gauge\na{x=\"1\"} 4\n", 200},
				{http.MethodPut, "c 5\n", 200},
				{http.MethodDelete, "", 202},
				{http.MethodDelete, "", 202},
			} {
				w := l.pushed(step.method, "job/j/instance/i", step.body)
				require.Equal(t, step.code, w.Code, w.Body)
				l.second()
			}
			require.Equal(t, []string{
				`{__name__="a", instance="i", job="j", x="1"} 1@0 4@1000 end@2000`,
				`{__name__="a", instance="i", job="j", x="2"} 2@0 end@1000`,
				`{__name__="b", instance="i", job="j"} 3@0 end@2000`,
				`{__name__="c", instance="i", job="j"} 5@2000 end@3000`,
			}, l.series())
			require.Len(t, l.store.Keys(), len(l.keys(anonymous))+1, "one state")
		})
	}
}

// TestPushesWithExtraLabels: extra labels are a part of the grouping key, so a push ends no series
// of a group with other ones.
func TestPushesWithExtraLabels(t *testing.T) {
	l := calm(t)
	for _, step := range []struct {
		method, group, body string
		code                int
	}{
		{http.MethodPut, "job/j?extra_label=zone%3Da", "x 1\n", 200},
		{http.MethodPut, "job/j?extra_label=zone%3Db", "y{zone=\"own\"} 2\n", 200},
		{http.MethodPut, "job/j/zone/a", "x 3\nz 4\n", 200},
		{http.MethodPut, "job/j?extra_label=__zone%3Da", "x 5\n", 400},
		{http.MethodDelete, "job/j", "", 202},
		{http.MethodDelete, "job/other?extra_label=zone%3Db&extra_label=job%3Dj", "", 202},
	} {
		w := l.pushed(step.method, step.group, step.body)
		require.Equal(t, step.code, w.Code, w.Body)
		l.second()
	}
	require.Equal(t, []string{
		`{__name__="x", job="j", zone="a"} 1@0 3@2000`,
		`{__name__="y", job="j", zone="b"} 2@1000 end@5000`,
		`{__name__="z", job="j", zone="a"} 4@2000`,
	}, l.series())
}

// TestPushTimes: the times of the last push that succeeded and of the last one that failed are
// metrics of the group, and a failed push changes nothing else.
func TestPushTimes(t *testing.T) {
	l := calm(t)
	for _, step := range []struct {
		body string
		code int
	}{{"a 1 5\n", 400}, {"a 2\n", 200}, {"a 3\na 4\n", 400}, {"a 5\npush_time_seconds 7\n", 200}} {
		w := l.pushed(http.MethodPut, "job/j", step.body)
		require.Equal(t, step.code, w.Code, w.Body)
		l.second()
	}
	require.Equal(t, []string{`{__name__="a", job="j"} 2@1000 5@3000`}, l.series())
	got := map[string]map[int64]float64{}
	for _, k := range l.keys(anonymous) {
		for _, r := range l.rows(k) {
			name := r.Labels.Get("__name__")
			for _, f := range r.Floats {
				put(got, name)
				got[name][f.T-someTime] = f.V
			}
		}
	}
	at := func(ms int64) float64 { return float64(someTime+ms) / 1000 }
	require.Equal(t, map[int64]float64{0: 0, 1000: at(1000), 2000: at(1000), 3000: at(3000)}, got["push_time_seconds"])
	require.Equal(t, map[int64]float64{0: at(0), 1000: at(0), 2000: at(2000), 3000: at(2000)}, got["push_failure_time_seconds"])
}

func TestPushRefused(t *testing.T) {
	long := "a{l=\"" + strings.Repeat("x", 3000) + "\"} 1\n"
	for _, tc := range []struct {
		method, group, body string
		headers             []string
		code                int
		want                string
	}{
		{"PUT", "job/j", "a 1\na{ 2\n", nil, 400, "pushed metrics are invalid: text format parsing error in line 2"},
		{"PUT", "job/j", "# TYPE a counter\n{} 1\n", nil, 400, "pushed metrics are invalid: labels without a metric's name"},
		{"PUT", "job/j", "a 1\n{} 2\n", nil, 400, "pushed metrics are invalid"},
		{"PUT", "job/j", "a 1 1700000000000\n", nil, 400, `must not have timestamps, but a metric of "a" has one`},
		{"PUT", "job/j", "a{x=\"1\"} 1\na{x=\"1\"} 2\n", nil, 400, "was collected before with the same name and label values"},
		{"PUT", "job/j", "# TYPE a gauge\na 1\n# TYPE a counter\n", nil, 400, "second TYPE line"},
		{"PUT", "job/j", "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n# TYPE h_count gauge\nh_count 2\n", nil, 400, "pushed metrics are invalid"},
		{"PUT", "job/j", "ok 1\n" + long, nil, 400, "label_value_too_long); it is set by max_label_value_length of the tenant, or --validation.max-length-label-value; nothing was stored"},
		{"PUT", "job/j", strings.Repeat("#\n", 1<<20) + "a 1\n", nil, 413, "pushed metrics of 2097156 bytes exceed the limit of 1048576 bytes (push.max-bytes)"},
		{"PUT", "job/j", "a{x=\"1\"} 1\na{x=\"2\"} 1\na{x=\"3\"} 1\na{x=\"4\"} 1\n", nil, 413, "the group would have 4 series, more than the limit of 3 (push.max-series)"},
		{"POST", "job/j", "a 1\n", []string{"Content-Encoding", "br"}, 415, "br encoding is not supported, only gzip and zstd"},
		{"PUT", "job/j", "\xff", []string{"Content-Type", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"}, 400, "pushed metrics are invalid"},
		{"PUT", "job", "a 1\n", nil, 400, "the path must have a value for each label"},
		{"PUT", "instance/i/job/j", "a 1\n", nil, 400, "the path must begin with /metrics/job/JOB"},
		{"PUT", "job@base64/=", "a 1\n", nil, 400, "job name is required"},
		{"DELETE", "job/j/__name__/x", "", nil, 400, `improper label name "__name__"`},
		{"PUT", "job/j", "a 1\n", []string{"X-Scope-OrgID", "a|b"}, 400, "invalid tenant"},
	} {
		t.Run(fmt.Sprintf("%s %s %.40q", tc.method, tc.group, tc.want), func(t *testing.T) {
			set := quick()
			set.Push = push.Settings{MaxBytes: 1 << 20, MaxSeries: 3}
			l := calmWith(t, Grouped, set)
			w := l.pushed(tc.method, tc.group, tc.body, tc.headers...)
			require.Equal(t, tc.code, w.Code, w.Body)
			require.Contains(t, w.Body.String(), tc.want)
			require.Empty(t, l.series())
			require.Zero(t, l.inflight())
		})
	}
}

// TestPushSeriesAddUp: posts to one group count together.
func TestPushSeriesAddUp(t *testing.T) {
	set := quick()
	set.Push.MaxSeries = 3
	l := calmWith(t, Grouped, set)
	require.Equal(t, 200, l.pushed("POST", "job/j", "a 1\nb 1\n").Code)
	w := l.pushed("POST", "job/j", "c 1\nd 1\n")
	require.Equal(t, 413, w.Code)
	require.Contains(t, w.Body.String(), "the group would have 4 series")
	require.Equal(t, 200, l.pushed("POST", "job/j", "a 2\nd 1\n").Code)
	require.Equal(t, 200, l.pushed("POST", "job/other", "a 2\nd 1\n").Code)
}

// racing is a store in which somebody else changes a group before a state is put.
type racing struct {
	objstore.Store
	mu   sync.Mutex
	race func()
}

func (s *racing) Put(ctx context.Context, k string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if isPush(k) {
		s.mu.Lock()
		race := s.race
		s.race = nil
		s.mu.Unlock()
		if race != nil {
			race()
		}
	}
	return s.Store.Put(ctx, k, body, cond)
}

// TestPushesRace: of two pushes at once, the one whose state comes last counts, whatever the
// clocks are; in all modes, also if the samples of both are flushed later than the states.
func TestPushesRace(t *testing.T) {
	for _, mode := range modes {
		t.Run(string(mode), func(t *testing.T) {
			r := &racing{}
			set := quick()
			set.Mode = mode
			l := newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store {
				r.Store = s
				return r
			})
			l.manual = true
			require.Equal(t, 200, l.pushed("PUT", "job/j", "a 1\n").Code)
			r.race = func() { require.Equal(t, 200, l.pushed("PUT", "job/j", "b 2\n").Code) }
			require.Equal(t, 200, l.pushed("PUT", "job/j", "c 3\n").Code)
			require.Equal(t, 202, l.pushed("DELETE", "job/j", "").Code)
			if mode == Buffered {
				require.Empty(t, l.keys(anonymous))
				require.Empty(t, l.consume())
			}
			require.Equal(t, []string{
				`{__name__="a", job="j"} 1@0 end@1`,
				`{__name__="b", job="j"} 2@1 end@2`,
				`{__name__="c", job="j"} 3@1 3@2 end@3`,
			}, l.series())
		})
	}
}

// TestPushContended: pushes do not go on for ever.
func TestPushContended(t *testing.T) {
	r := &racing{}
	l := newLakeThrough(t, quick(), func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store {
		r.Store = s
		return r
	})
	changes := int64(0)
	var race func()
	race = func() {
		changes++
		b, err := push.State{Version: push.Version, At: someTime + changes}.Encode()
		require.NoError(t, err)
		_, err = l.store.Put(t.Context(), key.Push(anonymous, pushGroupOf(t, "job/j").ID()), bytes.NewReader(b), objstore.Condition{})
		require.NoError(t, err)
		r.race = race
	}
	r.race = race
	w := l.pushed("PUT", "job/j", "c 3\n")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "the group is changed by too many pushes at once, try again")
	require.EqualValues(t, 1+maxPushTries, changes)
}

func pushGroupOf(t *testing.T, path string) push.Group {
	t.Helper()
	g, err := push.ParseGroup(path)
	require.NoError(t, err)
	return g
}

// TestPushFaults: a push is acknowledged only if its samples and the state are durable; then the
// next push ends what it does not have, also if the state was damaged meanwhile.
func TestPushFaults(t *testing.T) {
	for _, op := range []memstore.Op{memstore.Get, memstore.Put} {
		for _, when := range []memstore.When{memstore.Before, memstore.After} {
			t.Run(fmt.Sprintf("%s %v", op, when), func(t *testing.T) {
				l := calm(t)
				require.Equal(t, 200, l.pushed("PUT", "job/j", "a 1\n").Code)
				l.second()
				l.faults.Add(func(c memstore.Call) bool { return c.Op == op && isPush(c.Key) }, memstore.Fault{When: when, Err: errors.New("the store is away")})
				w := l.pushed("PUT", "job/j", "b 2\n")
				require.Equal(t, http.StatusInternalServerError, w.Code)
				l.undisclosed(w.Body.String(), "the store is away")
				l.second()
				require.Equal(t, 200, l.pushed("PUT", "job/j", "b 3\n").Code)
				got := l.series()
				require.Regexp(t, `1@0 (end@1000 end@2000|end@1000|end@2000)$`, got[0])
				require.Regexp(t, `3@2000$`, got[1])
			})
		}
	}
}

// TestPushFindsItsOwnState: a store may repeat a put whose first answer was lost, and say that the
// state has changed. The push is then stored once.
func TestPushFindsItsOwnState(t *testing.T) {
	l := calm(t)
	require.Equal(t, 200, l.pushed("PUT", "job/j", "a 1\n").Code)
	l.second()
	l.faults.Add(func(c memstore.Call) bool { return c.Op == memstore.Put && isPush(c.Key) }, memstore.Fault{When: memstore.After, Err: objstore.ErrPrecondition})
	require.Equal(t, 200, l.pushed("PUT", "job/j", "b 2\n").Code)
	require.Equal(t, []string{`{__name__="a", job="j"} 1@0 end@1000`, `{__name__="b", job="j"} 2@1000`}, l.series())
}

// TestDamagedPushState: a damaged state is replaced.
func TestDamagedPushState(t *testing.T) {
	l := calm(t)
	k := key.Push(anonymous, pushGroupOf(t, "job/j").ID())
	_, err := l.store.Put(t.Context(), k, strings.NewReader("{"), objstore.Condition{})
	require.NoError(t, err)
	require.Equal(t, 200, l.pushed("PUT", "job/j", "a 1\n").Code)
	l.second()
	require.Equal(t, 200, l.pushed("PUT", "job/j", "b 1\n").Code)
	require.Equal(t, []string{`{__name__="a", job="j"} 1@0 end@1000`, `{__name__="b", job="j"} 1@1000`}, l.series())
	require.Contains(t, l.log.String(), "is damaged and will be replaced")
}

// TestIdlePushesAreSwept: groups that nobody has pushed to for long leave nothing behind, also if
// no process lives for long. A sweep is short.
func TestIdlePushesAreSwept(t *testing.T) {
	l := calm(t)
	states := func() (n int) {
		for _, k := range l.store.Keys() {
			if isPush(k) {
				n++
			}
		}
		return n
	}
	// Groups whose creation causes a sweep, or not.
	sweeping, others := []string{}, []string{}
	for i := 0; len(sweeping) < 3 || len(others) < maxSwept+2; i++ {
		name := fmt.Sprintf("job/j/i/%d", i)
		if pushGroupOf(t, name).ID() < sweepBelow {
			sweeping = append(sweeping, name)
		} else {
			others = append(others, name)
		}
	}
	others = others[:maxSwept+2]
	for _, name := range others {
		require.Equal(t, 200, l.pushed("PUT", name, "a 1\n").Code)
	}
	l.later.Add(int64(pushIdle) / 2)
	require.Equal(t, 200, l.pushed("PUT", others[0], "a 1\n").Code)
	require.Equal(t, 200, l.pushed("PUT", sweeping[0], "a 1\n").Code)
	require.Equal(t, len(others)+1, states(), "none is idle")
	l.later.Add(int64(pushIdle)/2 + int64(time.Second))
	require.Equal(t, 200, l.pushed("PUT", sweeping[0], "a 1\n").Code)
	require.Equal(t, len(others)+1, states(), "no group was created")
	require.Equal(t, 200, l.pushed("PUT", sweeping[1], "a 1\n").Code)
	require.Equal(t, len(others)+2-maxSwept, states())
	require.Equal(t, 200, l.pushed("PUT", sweeping[2], "a 1\n").Code)
	require.Equal(t, 4, states(), "the last ones are gone, too")
}
