package rulefn_test

import (
	"context"
	"log/slog"
	"math"
	"net/url"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
)

// TestAlertsContinueFromAServer: a server evaluates rules for 15 minutes, and functions go on a
// minute later. An alert that is pending keeps its time, a firing one fires at once, one with a
// short "for" begins again. Only the first evaluation reads the past, also if the store was away.
func TestAlertsContinueFromAServer(t *testing.T) {
	hold := func(name string, d time.Duration) rulestore.Rule {
		return rulestore.Rule{Alert: name, Expr: "vector(1)", For: model.Duration(d)}
	}
	g := rulestore.Group{Name: "g", Rules: []rulestore.Rule{hold("Pending", time.Hour), hold("Firing", 12*time.Minute), hold("Short", 5*time.Minute)}}
	past := ruleeval.NewMemory(math.MaxInt64, "")
	engine := newEngine()
	defer func() { require.NoError(t, engine.Close()) }()
	server := upstream(t, g, &rules.ManagerOptions{
		QueryFunc: func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
			return rules.EngineQueryFunc(engine, past)(ctx, expr, at)
		},
		NotifyFunc: noting(map[string]string{}, ""), ExternalURL: &url.URL{}, Appendable: appender.V1{Appendable: appender.New(past.Add)}, Context: t.Context(),
		ResendDelay: time.Minute, Logger: slog.New(slog.DiscardHandler), Metrics: rules.NewGroupMetrics(nil),
	})
	first := server.EvalTimestamp(minute(0).UnixNano())
	last := first.Add(15 * time.Minute)
	for at := first; !at.After(last); at = at.Add(time.Minute) {
		server.Eval(t.Context(), at)
	}

	w := newWorld(t, past)
	w.rules(g)
	away, reads := true, 0
	w.read = func(_ context.Context, metric string) error {
		if metric != "ALERTS_FOR_STATE" {
			return nil
		}
		if reads++; away {
			return errAway
		}
		return nil
	}
	require.ErrorIs(t, w.function().Tick(t.Context(), last.Add(30*time.Second)), errAway)
	require.Empty(t, w.keysOf("rules-state/"), "the evaluation does not count")
	away, reads = false, 0
	now := last.Add(time.Minute)
	require.NoError(t, w.function().Tick(t.Context(), now))
	require.Equal(t, 2, reads)

	s, _, err := rulestate.Read(t.Context(), w.Store, tenant, "n", "g")
	require.NoError(t, err)
	require.Equal(t, now, s.Evaluated)
	began := first.Truncate(time.Second) // samples of ALERTS_FOR_STATE have seconds
	lost := now.Sub(last.Truncate(time.Second))
	for i, want := range []struct {
		state string
		at    time.Time
	}{
		{rulestate.Pending, began.Add(lost)}, // Prometheus adds the time without evaluations
		{rulestate.Firing, began},
		{rulestate.Pending, now},
	} {
		require.Len(t, s.Rules[i].Alerts, 1)
		a := s.Rules[i].Alerts[0]
		require.Equal(t, want.state, a.State, a.Labels)
		require.Equal(t, want.at, a.ActiveAt, a.Labels)
	}
	_, sent := w.delivered()
	require.Len(t, sent, 1, "of the firing alert")

	require.NoError(t, w.function().Tick(t.Context(), now.Add(time.Minute)))
	require.Equal(t, 2, reads)
}
