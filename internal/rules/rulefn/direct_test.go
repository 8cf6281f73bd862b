package rulefn_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/tests/support/appendertest"
)

// TestReceiversGetEachEventOnce: a receiver that does not merge notifications gets each of them
// once, whichever process evaluates next, and alerts that still fire again. Alertmanager may get
// them more often.
func TestReceiversGetEachEventOnce(t *testing.T) {
	const minutes = 40
	base := randomData(rand.New(rand.NewPCG(1, 3)), (minutes+2)*time.Minute)
	for _, direct := range []bool{false, true} {
		w := newWorld(t, base)
		w.direct(direct)
		w.rules(groups()...)
		for i := range minutes + 1 {
			require.True(t, w.tick(w.function(), minute(i)))
		}
		_, want := uninterrupted(t, base, groups(), minutes, resend(direct))
		require.Greater(t, len(want), 10)
		if direct {
			require.Len(t, w.notices, len(want))
		} else {
			require.Greater(t, len(w.notices), len(want))
		}
	}
}

// TestWhatIsLeft: of the notifications of a group, only those are sent again that the receiver has
// not accepted, also by another process, and its refusals are errors of one run.
func TestWhatIsLeft(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.direct(true)
	g := always("a", time.Minute)
	g.Rules = append(g.Rules, rulestore.Rule{Alert: "Other", Expr: "vector(1)"}, rulestore.Rule{Alert: "Third", Expr: "vector(1)"})
	w.rules(g)
	refused, accept := errors.New("refused"), 1
	var sent []string
	w.sender = sending(func(_ context.Context, _ string, all []rulestate.Notification) (d notify.Delivery, err error) {
		for i, n := range all {
			if i >= accept {
				return notify.Delivery{Sent: len(all), Left: all[i:], Refused: refused}, errAway
			}
			sent = append(sent, n.Labels.Get("alertname"))
		}
		return notify.Delivery{Sent: len(all)}, nil
	})
	err := w.function().Tick(t.Context(), minute(0))
	require.ErrorIs(t, err, errAway)
	require.ErrorIs(t, err, refused)
	require.ErrorContains(t, err, "send 2 notifications, which wait in the states")
	err = w.function().Tick(t.Context(), minute(1))
	require.ErrorContains(t, err, "send 1 notifications, which wait in the states")
	require.Equal(t, []string{"Always", "Other"}, sent)
	for i := range 20 { // longer than for Alertmanager
		accept = 0
		require.ErrorIs(t, w.function().Tick(t.Context(), minute(2+i)), errAway)
	}
	accept = 3
	require.NoError(t, w.function().Tick(t.Context(), minute(22)))
	require.Equal(t, []string{"Always", "Other", "Always", "Other", "Third"}, sent, "the latest event of each alert")
}

// TestWaitingIsBounded: a receiver that is away keeps no group from being evaluated, however many
// alerts wait for it.
func TestWaitingIsBounded(t *testing.T) {
	w := newWorld(t, ruleeval.NewMemory(math.MaxInt64, ""))
	w.direct(true)
	w.set.Notify.RepeatInterval = 24 * time.Hour
	w.sender = sending(func(_ context.Context, _ string, all []rulestate.Notification) (notify.Delivery, error) {
		return away(all), errAway
	})
	tx := &appender.Transaction{}
	for i := range 4000 {
		tx.Samples = append(tx.Samples, appendertest.Sample(labels.FromStrings("__name__", "m", "i", fmt.Sprint(i)), minute(0).UnixMilli(), 1))
	}
	require.NoError(t, w.base.Add(tx))
	w.rules(rulestore.Group{Name: "g", Rules: []rulestore.Rule{{Alert: "A", Expr: "m", Labels: map[string]string{"at": "{{ with query \"time()\" }}{{ . | first | value }}{{ end }}"}}}})
	var log bytes.Buffer
	w.logger = slog.New(slog.NewJSONHandler(&log, nil))
	for i := range 3 {
		require.ErrorIs(t, w.function().Tick(t.Context(), minute(1+i)), errAway)
	}
	require.Contains(t, log.String(), "notifications are dropped, because too many of a group wait")
	state, _, err := rulestate.Read(t.Context(), w.Store, tenant, "n", "g")
	require.NoError(t, err)
	require.True(t, state.Evaluated.After(minute(2)), "it is evaluated")
	require.LessOrEqual(t, len(state.Outbox.Notifications), 10_000+2*4000)
}
