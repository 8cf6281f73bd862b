package rulesapp_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/rulesapp"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
)

const name = "team-a"

// origin is the time 0 of the tests, at the begin of a day. The store's clock is three days later.
var origin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func now() time.Time { return origin.Add(72 * time.Hour) }

func newStore(faults func(memstore.Call) memstore.Fault) *memstore.Store {
	return memstore.New(memstore.Settings{Now: now, Faults: faults, Immutable: func(k string) bool {
		return strings.HasPrefix(k, "v1/") && k != key.Manifest(name)
	}})
}

// lake returns a lake over a store.
func lake(t *testing.T, store objstore.Store) *rulesapp.Lake {
	t.Helper()
	s, err := query.New(query.Settings{CacheDir: t.TempDir(), Threads: 1}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return &rulesapp.Lake{Store: store, Query: s}
}

// put stores a gauge with values that are a minute apart, from the origin on.
func put(t *testing.T, store objstore.Store, ls labels.Labels, values ...float64) {
	t.Helper()
	byWindow := map[key.Window][]segment.Float{}
	for i, v := range values {
		at := origin.Add(time.Duration(i) * time.Minute).UnixMilli()
		w := key.WindowOf(at)
		byWindow[w] = append(byWindow[w], segment.Float{T: at, V: v})
	}
	for w, floats := range byWindow {
		require.NoError(t, compacttest.Put(t.Context(), store, name, w, ulid.Make(), []segment.Row{{Labels: ls, Floats: floats}}))
	}
}

// rulesFile makes a file in the working directory of the test, whose path determines the times of
// evaluations.
func rulesFile(t *testing.T, text string) rulesapp.Source {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.yml"), []byte(text), 0o600))
	return rulesapp.Source{Files: []string{"rules.yml"}, Interval: time.Minute, ExternalLabels: map[string]string{"region": "north"}}
}

const alerts = `
groups:
- name: g
  rules:
  - record: load:max
    expr: max by (host) (load)
  - alert: Busy
    expr: load:max > 5
    for: 2m
    keep_firing_for: 1m
    labels: {severity: page}
    annotations: {summary: "{{ $labels.host }} in {{ $externalLabels.region }}: {{ $value }}"}
  - alert: Unrelated
    expr: vector(1)
`

// minutes is a time after the origin.
func minutes(n float64) time.Time { return origin.Add(time.Duration(n * float64(time.Minute))) }

// replay returns episodes with their times in minutes after the origin, rounded to the minute of
// the sample that was seen; -1 is never.
func replay(t *testing.T, l *rulesapp.Lake, r rulesapp.Replay) (out []string, all *rulesapp.Replayed) {
	t.Helper()
	all, err := l.Replay(t.Context(), r, now())
	require.NoError(t, err)
	for _, e := range all.Episodes {
		line := e.Labels.Get("host")
		for _, at := range []time.Time{e.Since, e.Firing, e.Resolved} {
			if at.IsZero() {
				line += " -"
			} else {
				line += " " + at.Truncate(time.Minute).Sub(origin).String()
			}
		}
		out = append(out, line)
	}
	return out, all
}

func TestReplay(t *testing.T) {
	store := newStore(nil)
	put(t, store, labels.FromStrings("__name__", "load", "host", "a"), 1, 9, 8, 7, 6, 1, 1, 1, 1, 1, 9, 9, 1, 1, 1, 7)
	put(t, store, labels.FromStrings("__name__", "load", "host", "b"), 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6)
	l := lake(t, store)
	r := rulesapp.Replay{Source: rulesFile(t, alerts), Alert: "Busy", Tenant: name, Start: minutes(0), End: minutes(16), MemoryBytes: 1 << 20}
	want := []string{
		"b 0s 2m0s -",
		"a 1m0s 3m0s 6m0s", // kept for a minute
		"a 10m0s - 12m0s",
		"a 15m0s - -",
	}
	got, all := replay(t, l, r)
	require.Equal(t, want, got)
	require.EqualValues(t, 16, all.Evaluations)
	require.Empty(t, all.Note)
	one := all.Episodes[1]
	require.Equal(t, labels.FromStrings("alertname", "Busy", "host", "a", "severity", "page"), one.Labels)
	require.Equal(t, labels.FromStrings("summary", "a in north: 6"), one.Annotations)
	require.InDelta(t, 7.0, one.Value, 0)
	require.Equal(t, "g", one.Group)

	t.Run("a later start", func(t *testing.T) {
		r := r
		r.Start = minutes(3)
		got, _ := replay(t, l, r)
		require.Equal(t, []string{"a 3m0s - 5m0s", "b 3m0s 5m0s -", "a 10m0s - 12m0s", "a 15m0s - -"}, got)
	})
	t.Run("recorded results are not there", func(t *testing.T) {
		r := r
		r.Recorded = true
		got, _ := replay(t, l, r)
		require.Empty(t, got)
	})
	t.Run("as of a time before the data was written", func(t *testing.T) {
		r := r
		r.AsOf = now().Add(-48 * time.Hour)
		got, _ := replay(t, l, r)
		require.Empty(t, got)
	})
	t.Run("an evaluation fails", func(t *testing.T) {
		r := r
		r.Source = rulesFile(t, strings.ReplaceAll(alerts, "load:max > 5", "load:max * on () load"))
		_, all := replay(t, l, r)
		require.Contains(t, all.Note, "16 evaluations failed, as they would have live, such as Busy of group g at 2026-03-01T00:00:")
	})
}

func TestReplayThatCannotBe(t *testing.T) {
	store := newStore(nil)
	put(t, store, labels.FromStrings("__name__", "load", "host", "a"), 1, 9, 8, 7)
	l := lake(t, store)
	good := rulesapp.Replay{Source: rulesFile(t, alerts), Alert: "Busy", Tenant: name, Start: minutes(0), End: minutes(16), MemoryBytes: 1 << 20}
	for _, tc := range []struct {
		what   string
		change func(*rulesapp.Replay)
		want   string
	}{
		{"alert", func(r *rulesapp.Replay) { r.Alert = "Buzy" }, "no alert Buzy in rules.yml: it has Busy, Unrelated"},
		{"times", func(r *rulesapp.Replay) { r.End = minutes(-1) }, "want a start before the end"},
		{"file", func(r *rulesapp.Replay) { r.Files = []string{"none.yml"} }, "read rules: none.yml: open none.yml"},
		{"tenant", func(r *rulesapp.Replay) { r.Tenant = "a/b" }, "tenant"},
		{"memory", func(r *rulesapp.Replay) { r.MemoryBytes = 1000 }, "the results of the rules need more than 1000 bytes: raise --rules.max-memory"},
	} {
		t.Run(tc.what, func(t *testing.T) {
			r := good
			tc.change(&r)
			_, err := l.Replay(t.Context(), r, now())
			require.ErrorContains(t, err, tc.want)
		})
	}
	t.Run("a limit of queries", func(t *testing.T) {
		put(t, store, labels.FromStrings("__name__", "load", "host", "b"), 1, 9, 8, 7)
		s, err := query.New(query.Settings{CacheDir: t.TempDir(), Threads: 1, MaxSamples: 1}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), now)
		require.NoError(t, err)
		defer s.Close()
		_, err = (&rulesapp.Lake{Store: store, Query: s}).Replay(t.Context(), good, now())
		require.ErrorContains(t, err, "--query.max-samples", "it is no failure of the rule")
	})
	t.Run("ended", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Replay(ctx, good, now())
		require.ErrorIs(t, err, context.Canceled)
	})
}
