package rulefn_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/tests/support/memqueue"
)

func minute(n int) time.Time { return origin.Add(time.Duration(n) * time.Minute) }

// one is a group with one rule that counts its evaluations.
func one(name string, interval time.Duration) rulestore.Group {
	return rulestore.Group{Name: name, Interval: model.Duration(interval), Rules: []rulestore.Rule{{Record: "n", Expr: "vector(1)", Labels: map[string]string{"g": name}}}}
}

// TestOutages: evaluations of the last five minutes are made up for, older ones are left out.
func TestOutages(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.rules(one("a", time.Minute), one("hourly", time.Hour))
	f := w.function()
	count := func() int {
		samples, _ := w.delivered()
		n := 0
		for k := range samples {
			if strings.Contains(k, `g="a"`) {
				n++
			}
		}
		return n
	}
	w.tick(f, minute(0))
	w.tick(f, minute(0))
	require.Equal(t, 1, count(), "each evaluation counts once")
	w.tick(f, minute(3))
	require.Equal(t, 4, count())
	w.tick(w.function(), minute(4))
	require.Equal(t, 5, count())
	w.tick(f, minute(60))
	require.Equal(t, 10, count(), "those of 5 minutes")
}

// TestRemovedGroupsEnd: the series of a group that the tenant removes become stale, and its alerts
// are forgotten.
func TestRemovedGroupsEnd(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.rules(one("a", time.Minute), one("b", time.Minute))
	f := w.function()
	w.tick(f, minute(0))
	w.rules(one("b", time.Minute))
	stale := func() (out []string) {
		samples, _ := w.delivered()
		for k, v := range samples {
			if v == "7ff0000000000002" {
				require.Equal(t, value.StaleNaN, uint64(0x7ff0000000000002))
				name, _, _ := strings.Cut(k, "@")
				out = append(out, name)
			}
		}
		return out
	}
	w.tick(f, minute(1))
	w.tick(f, minute(2))
	require.Equal(t, []string{labels.FromStrings("__name__", "n", "g", "a").String()}, stale())
	s, _, err := rulestate.Read(t.Context(), w.Store, tenant, "n", "a")
	require.NoError(t, err)
	require.True(t, s.Idle())
	samples, _ := w.delivered()
	w.tick(w.function(), minute(3))
	after, _ := w.delivered()
	require.Len(t, after, len(samples)+1, "only b goes on")
}

// TestQueue: many groups are evaluated by other invocations, with equal results.
func TestQueue(t *testing.T) {
	base := randomData(rand.New(rand.NewPCG(1, 1)), ticks*time.Minute)
	var all []rulestore.Group
	for _, g := range []rulestore.Group{one("a", time.Minute), one("b", 30*time.Second), one("c", 2*time.Minute)} {
		g.Rules[0].Expr = "v"
		g.Rules = append(g.Rules, rulestore.Rule{Alert: "High", Expr: "v > 6", Labels: map[string]string{"g": g.Name}})
		all = append(all, g)
	}
	alone := newWorld(t, base)
	alone.rules(all...)
	run(alone)
	want, wantSent := alone.delivered()
	require.NotEmpty(t, wantSent)

	w := newWorld(t, base)
	q := memqueue.New(memqueue.Settings{})
	w.queue, w.set.MaxRules = q, 4
	w.rules(all...)
	planner, workers := w.function(), []*rulefn.Runner{w.function(), w.function()}
	for i := range ticks + 1 {
		w.tick(planner, minute(i))
		received, err := q.Receive(t.Context(), 10, 0, time.Minute)
		require.NoError(t, err)
		require.Len(t, received, 2, "6 rules in parts of 4 at most")
		for n, m := range received {
			require.NoError(t, workers[(i+n)%2].Work(t.Context(), []byte(m.Body)))
			require.NoError(t, workers[(i+n+1)%2].Work(t.Context(), []byte(m.Body)), "a message may come twice")
		}
		require.NoError(t, q.Delete(t.Context(), received...))
	}
	got, sent := w.delivered()
	require.Equal(t, want, got)
	require.Equal(t, wantSent, sent)
	for _, bad := range []string{"", "{", `{"version":2}`, `{"version":1,"tenant":"a/b","at":"2026-01-01T00:00:00Z","groups":["x"]}`, `{"version":1,"x":1}`} {
		require.ErrorIs(t, planner.Work(t.Context(), []byte(bad)), rulefn.ErrMessage, bad)
	}
}

// TestRetries: an evaluation whose query fails for a reason that passes is repeated, one that fails
// for good is not. Other groups go on.
func TestRetries(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	g := one("a", time.Minute)
	g.Rules = append(g.Rules,
		rulestore.Rule{Record: "wrong", Expr: `vector(1) + on() (label_replace(vector(1), "a", "1", "", "") or label_replace(vector(1), "a", "2", "", ""))`},
		rulestore.Rule{Record: "read", Expr: "v or vector(1)"})
	later := one("b", time.Minute) // evaluated after the other one in each minute
	later.Rules[0].Expr = `timestamp(n{g="a"})`
	w.rules(g, later)
	count := func(text string) (n int) {
		samples, _ := w.delivered()
		for k := range samples {
			if strings.Contains(k, text) {
				n++
			}
		}
		return n
	}
	f := w.function()
	w.tick(f, minute(0))
	require.Equal(t, 1, count(`g="a"`), "the other rules have their results")
	require.Equal(t, 1, count(`"read"`))
	w.read = func(_ context.Context, metric string) error {
		if metric == "v" {
			return errAway
		}
		return nil
	}
	err := f.Tick(t.Context(), minute(1))
	require.ErrorIs(t, err, errAway)
	require.ErrorContains(t, err, `evaluate rule 3, "read", of group "a" of namespace "n"`)
	require.Equal(t, 1, count(`g="a"`))
	require.Equal(t, 2, count(`g="b"`))
	samples, _ := w.delivered()
	values := map[string]bool{}
	for k, v := range samples {
		if strings.Contains(k, `g="b"`) {
			values[v] = true
		}
	}
	require.Len(t, values, 1, "what the failed evaluation wrote before does not count")
	w.read = nil
	w.tick(f, minute(2))
	require.Equal(t, 3, count(`g="a"`))
	require.Equal(t, 3, count(`"read"`))
	require.Equal(t, 3, count(`g="b"`))
}

// TestAlertmanagerIsAway: notifications wait in the states, the latest of each alert.
func TestAlertmanagerIsAway(t *testing.T) {
	away := true
	var got [][]map[string]any
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away {
			http.Error(rw, "not now", http.StatusServiceUnavailable)
			return
		}
		user, password, _ := r.BasicAuth()
		paths = append(paths, r.Method+" "+r.URL.Path+" "+user+" "+password)
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		var all []map[string]any
		require.NoError(t, json.Unmarshal(body, &all))
		got = append(got, all)
	}))
	defer server.Close()
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.set.Notify.Alertmanagers = strings.Replace(server.URL, "http://", "http://u:p@", 1) + "/am/"
	w.set.Notify.ExternalLabels = "cluster=prod, zone=other"
	sender, err := w.set.Sender()
	require.NoError(t, err)
	w.sender = sender
	w.rules(rulestore.Group{Name: "g", Rules: []rulestore.Rule{{
		Alert: "Always", Expr: "vector(1)", Labels: map[string]string{"zone": "own"}, Annotations: map[string]string{"a": "<b> in {{ $externalLabels.cluster }}"},
	}}})
	f := w.function()
	for i := range 3 {
		err := f.Tick(t.Context(), minute(i))
		require.ErrorContains(t, err, "503 Service Unavailable: \"not now", i)
		require.NotContains(t, err.Error(), "u:p@", "passwords stay secret")
	}
	away = false
	require.NoError(t, w.function().Tick(t.Context(), minute(2)))
	require.Equal(t, []string{"POST /am/api/v2/alerts u p"}, paths)
	require.Len(t, got, 1)
	require.Len(t, got[0], 1)
	require.Equal(t, map[string]any{"alertname": "Always", "tenant": tenant, "cluster": "prod", "zone": "own"}, got[0][0]["labels"])
	require.Equal(t, map[string]any{"a": "<b> in prod"}, got[0][0]["annotations"])
	require.Equal(t, "http://example.com/p/#/explore?g0.expr=vector%281%29&tenant=t", got[0][0]["generatorURL"])
	require.NoError(t, w.function().Tick(t.Context(), minute(2)), "nothing is due")
}

// TestEvaluationsOfOthers: samples of groups that other processes have evaluated are written again,
// in one message.
func TestEvaluationsOfOthers(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.rules(one("a", time.Minute), one("b", time.Minute), one("c", 30*time.Second))
	w.tick(w.function(), minute(0))
	require.Equal(t, 1, w.writes)
	want, _ := w.delivered()
	for _, k := range w.keysOf("samples/") {
		require.NoError(t, w.Delete(t.Context(), k)) // the first delivery was lost
	}
	f := w.function()
	w.tick(f, minute(0))
	require.Equal(t, 2, w.writes)
	again, _ := w.delivered()
	require.Equal(t, want, again)
	w.tick(f, minute(0))
	require.Equal(t, 2, w.writes, "the process knows what it has delivered")
	w.tick(w.function(), minute(1))
	require.Equal(t, 4, w.writes, "results of others, then those of this run")
}

// TestJoinedMessagesAreBounded: what is written again is divided if it is large.
func TestJoinedMessagesAreBounded(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	large := func(name string) rulestore.Group {
		g := one(name, time.Minute)
		g.Rules[0].Expr = `label_replace(vector(1), "a", "` + strings.Repeat("x", 5<<20) + `", "", "")`
		return g
	}
	w.rules(large("a"), large("b"), large("c"))
	w.tick(w.function(), minute(0))
	want, _ := w.delivered()
	require.Equal(t, 1, w.writes)
	w.tick(w.function(), minute(0))
	require.Equal(t, 3, w.writes, "of two groups, and of one")
	again, _ := w.delivered()
	require.Len(t, again, 3)
	require.True(t, maps.Equal(want, again))
}

func TestStatesAreBounded(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.set.MaxStateBytes = 1024
	g := one("a", time.Minute)
	g.Rules[0].Expr = `label_replace(vector(1), "a", "` + strings.Repeat("x", 2000) + `", "", "")`
	w.rules(g)
	err := w.function().Tick(t.Context(), minute(0))
	var large *rulestate.LargeError
	require.ErrorAs(t, err, &large)
	require.Empty(t, w.keysOf(key.RuleStatesPrefix))
	require.Empty(t, w.keysOf("samples/"))
	w.set.MaxStateBytes, w.set.MaxSeries = 1<<20, 1
	g.Rules = append(one("b", 0).Rules, g.Rules...)
	w.rules(g)
	require.NoError(t, w.function().Tick(t.Context(), minute(0)))
	samples, _ := w.delivered()
	require.Len(t, samples, 1, "the rule that goes beyond the limit has no result")
}

func TestSettings(t *testing.T) {
	s := settings.Default[rulefn.Settings]()
	require.NoError(t, s.Validate())
	sender, err := s.Sender()
	require.NoError(t, err)
	require.Nil(t, sender)
	for _, change := range []func(*rulefn.Settings){
		func(s *rulefn.Settings) { s.ExternalURL = "example.com" },
		func(s *rulefn.Settings) { s.CatchUp = time.Second },
		func(s *rulefn.Settings) { s.Notify.RepeatInterval = time.Second },
		func(s *rulefn.Settings) { s.Notify.Webhook = "example.com" },
	} {
		s := settings.Default[rulefn.Settings]()
		change(&s)
		require.Error(t, s.Validate())
	}
}
