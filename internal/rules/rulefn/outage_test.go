package rulefn_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/rules"
	v1 "github.com/prometheus/prometheus/web/api/v1"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulefn"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/store/objstore"
)

// sending is a function as a rulefn.Sender.
type sending func(ctx context.Context, id string, all []rulestate.Notification) (notify.Delivery, error)

func (s sending) Send(ctx context.Context, id string, all []rulestate.Notification) (notify.Delivery, error) {
	return s(ctx, id, all)
}

// away is what becomes of notifications whose receiver does not answer.
func away(all []rulestate.Notification) notify.Delivery {
	return notify.Delivery{Sent: len(all), Left: all}
}

// always is a group with an alert that fires, and whose state has samples, too.
func always(name string, interval time.Duration) rulestore.Group {
	return rulestore.Group{Name: name, Interval: model.Duration(interval), Rules: []rulestore.Rule{{Alert: "Always", Expr: "vector(1)", Labels: map[string]string{"g": name}}}}
}

// withSamples returns the names of the groups of which a sample of a time was delivered.
func (w *world) withSamples(names []string) (out []string) {
	samples, _ := w.delivered()
	for _, name := range names {
		for k := range samples {
			if strings.Contains(k, `g="`+name+`"`) {
				out = append(out, name)
				break
			}
		}
	}
	return out
}

// TestSlowGroup: a group whose query takes all of its time keeps no other group from being
// evaluated, committed and delivered.
func TestSlowGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
		slow := one("slow", time.Minute)
		slow.Rules[0].Expr = "slow"
		all, names := []rulestore.Group{slow}, []string{}
		for i := range 10 {
			names = append(names, fmt.Sprint("fast", i))
			all = append(all, one(names[i], time.Minute))
		}
		w.rules(all...)
		w.read = func(ctx context.Context, metric string) error {
			if metric == "slow" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 58*time.Second)
		defer cancel()
		err := w.function().Tick(ctx, minute(0))
		require.ErrorContains(t, err, `evaluate group "slow" of namespace "n"`)
		require.ErrorContains(t, err, "it may take 26.1s, which is 3/4 of the time that was left")
		require.NoError(t, ctx.Err())
		require.Equal(t, names, w.withSamples(names))
	})
}

// TestTimeIsOver: if there is no time for all groups, those that were evaluated count, and the run
// says that others wait.
func TestTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
		var all []rulestore.Group
		var names []string
		for i := range 10 {
			names = append(names, fmt.Sprint(i))
			g := one(names[i], time.Minute)
			g.Rules[0].Expr = "v or vector(1)"
			all = append(all, g)
		}
		w.rules(all...)
		w.read = func(context.Context, string) error { time.Sleep(7 * time.Second); return nil }
		f := w.function()
		tick := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 58*time.Second)
			defer cancel()
			return f.Tick(ctx, minute(0))
		}
		require.ErrorContains(t, tick(), "of 10 evaluations of groups wait for the next run")
		done := len(w.withSamples(names))
		require.Greater(t, done, 2)
		require.Less(t, done, 10)
		for range 3 {
			_ = tick()
		}
		require.Equal(t, names, w.withSamples(names))
	})
}

// TestAlertmanagerDoesNotAnswer: rules of all tenants are evaluated, and the run fails, although a
// receiver takes all of the time.
func TestAlertmanagerDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
		w.sender = sending(func(ctx context.Context, _ string, all []rulestate.Notification) (notify.Delivery, error) {
			<-ctx.Done()
			return away(all), ctx.Err()
		})
		w.rules(always("a", time.Minute))
		w.rulesOf(other, always("b", time.Minute))
		for i := range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 58*time.Second)
			require.ErrorContains(t, w.function().Tick(ctx, minute(i)), "notifications, which wait in the states")
			cancel()
			samples, _ := w.delivered()
			require.Len(t, samples, 2*2*(i+1), "ALERTS and ALERTS_FOR_STATE of both tenants")
		}
	})
}

// TestOneAlertmanagerIsAway: the others get all notifications at once, and it gets no more requests
// after its first failure.
func TestOneAlertmanagerIsAway(t *testing.T) {
	var bad, good atomic.Int32
	done := make(chan struct{})
	away := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		bad.Add(1)
		select {
		case <-done:
		case <-r.Context().Done():
		}
		http.Error(rw, "not now", http.StatusServiceUnavailable)
	}))
	defer away.Close()
	there := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if good.Add(1) == 3 {
			close(done)
		}
	}))
	defer there.Close()
	set := settings.Default[rulefn.Settings]()
	set.Notify.Alertmanagers, set.Notify.Timeout = away.URL+","+there.URL, 5*time.Minute
	sender, err := set.Sender()
	require.NoError(t, err)
	all := make([]rulestate.Notification, 600)
	for i := range all {
		all[i].Labels = labels.FromStrings("alertname", "A", "i", fmt.Sprint(i))
	}
	d, err := sender.Send(t.Context(), tenant, all)
	require.ErrorContains(t, err, "503 Service Unavailable")
	require.Len(t, all, d.Sent)
	require.EqualValues(t, 1, bad.Load())
	require.EqualValues(t, 3, good.Load())
}

// TestOutboxIsBounded: what waits for Alertmanager are the notifications of the last run, and the
// latest of each other alert, and none of alerts that ended long ago.
func TestOutboxIsBounded(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.sender = sending(func(_ context.Context, _ string, all []rulestate.Notification) (notify.Delivery, error) {
		return away(all), errAway
	})
	w.rules(rulestore.Group{Name: "a", Interval: model.Duration(30 * time.Second), Rules: []rulestore.Rule{
		{Alert: "New", Expr: "vector(time())", Labels: map[string]string{"at": "{{ $value }}"}},
		{Alert: "Always", Expr: "vector(1)"},
	}})
	f := w.function()
	for i := 0; i < 60; i += 4 { // each run makes up for four minutes
		require.ErrorIs(t, f.Tick(t.Context(), minute(i)), errAway)
		state, _, err := rulestate.Read(t.Context(), w.Store, tenant, "n", "a")
		require.NoError(t, err)
		known := map[string]int{}
		for _, n := range state.Outbox.Notifications {
			known[n.Labels.String()]++
			// The first evaluation of the run was four minutes before the last one.
			require.GreaterOrEqual(t, n.EndsAt, state.Evaluated.Add(-(4+15)*time.Minute))
		}
		require.NotZero(t, known[labels.FromStrings("alertname", "Always").String()])
		for alert, n := range known {
			require.LessOrEqual(t, n, 8, "%s at %d: one for each evaluation of the run", alert, i)
		}
		require.LessOrEqual(t, len(known), 2*(4+15)+4, "two evaluations a minute, and at each end of the 15 minutes")
	}
}

// TestLongIntervals: what waits in the state of a group with a long interval is sent within the
// time of catching up, by the process that evaluated it and by others.
func TestLongIntervals(t *testing.T) {
	for _, same := range []bool{true, false} {
		isAway := true
		w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
		w.rules(always("a", time.Hour))
		w.sender = sending(func(ctx context.Context, id string, all []rulestate.Notification) (notify.Delivery, error) {
			if isAway {
				return away(all), errAway
			}
			return w.Send(ctx, id, all)
		})
		now, f := 0, w.function()
		tick := func() error {
			if now++; !same {
				f = w.function()
			}
			return f.Tick(t.Context(), minute(now))
		}
		for len(w.keysOf(key.RuleStatesPrefix)) == 0 {
			_ = tick()
			require.Less(t, now, 61)
		}
		for range 10 {
			_ = tick()
		}
		isAway = false
		for range 5 {
			require.NoError(t, tick())
		}
		_, sent := w.delivered()
		require.Len(t, sent, 1)
	}
}

// TestDamagedState: a group whose state cannot be read is not evaluated, and the error names the
// object, also where the groups are shown. Other groups are evaluated, and groups that were removed
// end.
func TestDamagedState(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.rules(one("a", time.Minute), one("b", time.Minute), one("c", time.Minute))
	f := w.function()
	w.tick(f, minute(0))
	damaged := key.RuleState(tenant, "n", "a")
	_, obj, err := objstore.ReadAll(t.Context(), w.Store, damaged)
	require.NoError(t, err)
	_, err = w.Put(t.Context(), damaged, bytes.NewReader([]byte("{}")), objstore.Condition{IfMatch: obj.ETag})
	require.NoError(t, err)
	require.ErrorContains(t, f.Tick(t.Context(), minute(1)), damaged)
	shown, err := f.Shown(t.Context(), tenant)
	require.NoError(t, err)
	require.Len(t, shown, 3)
	require.Equal(t, rules.HealthBad, shown[0].Rules[0].(v1.RecordingRule).Health)
	require.Contains(t, shown[0].Rules[0].(v1.RecordingRule).LastError, damaged)
	require.Equal(t, rules.HealthGood, shown[1].Rules[0].(v1.RecordingRule).Health)
	samples, _ := w.delivered()
	require.Len(t, samples, 3+2)

	w.rules(one("b", time.Minute)) // a and c end
	require.ErrorContains(t, f.Tick(t.Context(), minute(2)), damaged)
	samples, _ = w.delivered()
	require.Len(t, samples, 3+2+2, "a sample of b, and a stale marker of c")
}

// TestErrorsAreLogged: each invocation that fails logs one line, by which an alarm counts.
func TestErrorsAreLogged(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	var log bytes.Buffer
	w.logger = slog.New(slog.NewJSONHandler(&log, nil))
	w.rules(one("a", time.Minute))
	message := fmt.Sprintf(`{"version":1,"tenant":"t","etag":"x","at":%q,"groups":[%q]}`, minute(0).Format(time.RFC3339), key.RuleState(tenant, "n", "a"))
	for _, tc := range []struct {
		body string
		dead bool
		want error
	}{{"{", false, rulefn.ErrMessage}, {message, true, errKilled}} {
		log.Reset()
		w.dead = tc.dead
		err := w.function().Work(t.Context(), []byte(tc.body))
		require.ErrorIs(t, err, tc.want)
		require.Equal(t, 1, strings.Count(log.String(), `"msg":"evaluating rules failed"`), log.String())
	}
	w.dead = false
	log.Reset()
	require.NoError(t, w.function().Work(t.Context(), []byte(message)))
	require.Contains(t, log.String(), `"msg":"evaluated rules"`)
}
