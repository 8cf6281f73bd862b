package rulestate_test

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/rules/rulestate"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// example is a state with every field.
func example() *rulestate.Group {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	clock := at.Add(time.Minute)
	ls := labels.FromStrings("alertname", "Down", "job", "<é>")
	return &rulestate.Group{
		Version: rulestate.Version, ID: ulid.MustParse("01K1GZ8V6D8Q7N0XJ5W3C2B1A9"), Namespace: "web", Name: "availability", Evaluated: at,
		Measured: rulestate.Measured{LastEvaluation: clock, EvaluationTime: 0.25},
		Rules: []rulestate.Rule{
			{Key: "job:up:avg{}", Measured: rulestate.Measured{LastEvaluation: clock, EvaluationTime: 0.0625}, Series: []labels.Labels{labels.FromStrings("__name__", "job:up:avg", "job", "a")}, Error: "many-to-many matching not allowed"},
			{Key: `Down{severity="page"}`, Measured: rulestate.Measured{LastEvaluation: clock.Add(time.Second / 16), EvaluationTime: 0.125}, Alerts: []rulestate.Alert{{
				Labels: ls, Annotations: labels.FromStrings("summary", "a > b"), State: rulestate.Firing, Value: 0.5,
				ActiveAt: at.Add(-time.Hour), FiredAt: at.Add(-time.Minute), KeepFiringSince: at, LastSentAt: at, ValidUntil: at.Add(4 * time.Minute),
			}}},
		},
		Outbox: rulestate.Outbox{Samples: []byte{1, 2, 3}, Count: 1, Notifications: []rulestate.Notification{{
			Labels: ls, Annotations: labels.EmptyLabels(), StartsAt: at.Add(-time.Minute), EndsAt: at.Add(4 * time.Minute), GeneratorURL: "http://h/#/explore?g0.expr=up",
		}}},
	}
}

// TestExampleOfTheSchema: what schemas/rules-state.md shows are the bytes of the example.
func TestExampleOfTheSchema(t *testing.T) {
	b, err := rulestate.Encode(example())
	require.NoError(t, err)
	page, err := os.ReadFile("../../../schemas/rules-state.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	text, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	require.Equal(t, text, string(b))
	back, err := rulestate.Decode(b)
	require.NoError(t, err)
	require.Equal(t, example(), back)
}

// TestStatesOfOlderPrograms: a state without times of the clock has none.
func TestStatesOfOlderPrograms(t *testing.T) {
	old := `{"version":1,"id":"01K1GZ8V6D8Q7N0XJ5W3C2B1A9","namespace":"web","name":"availability","evaluated":"2026-01-02T03:04:05Z","rules":[{"key":"a{}"}],"outbox":{}}`
	b, err := checksum.Append([]byte(old + "\n"))
	require.NoError(t, err)
	g, err := rulestate.Decode(b)
	require.NoError(t, err)
	require.Zero(t, g.Measured)
	require.Zero(t, g.Rules[0].Measured)
	again, err := rulestate.Encode(g)
	require.NoError(t, err)
	require.Equal(t, string(b), string(again))
}

func TestDecodeRefuses(t *testing.T) {
	b, err := rulestate.Encode(example())
	require.NoError(t, err)
	for i := range b[:len(b)-1] {
		damaged := append([]byte(nil), b...)
		damaged[i] ^= 1
		_, err := rulestate.Decode(damaged)
		require.Error(t, err, i)
	}
	_, err = rulestate.Decode([]byte(`{"version":1}`))
	require.ErrorIs(t, err, checksum.ErrDamaged)
	for _, tc := range []struct {
		change func(*rulestate.Group)
		want   string
	}{
		{func(g *rulestate.Group) { g.Version = 2 }, "version 2, this program reads 1"},
		{func(g *rulestate.Group) { g.Rules[1].Alerts[0].State = "x" }, `rule 1: unknown state "x" of an alert`},
		{func(g *rulestate.Group) { g.Rules[1].Alerts = append(g.Rules[1].Alerts, g.Rules[1].Alerts[0]) }, "not in ascending order"},
		{func(g *rulestate.Group) { g.Outbox.Count = 0 }, "samples without their number"},
	} {
		g := example()
		tc.change(g)
		b, err := rulestate.Encode(g)
		require.NoError(t, err)
		_, err = rulestate.Decode(b)
		require.ErrorContains(t, err, tc.want)
	}
}

func TestValues(t *testing.T) {
	for _, v := range []float64{0, -1.5, 1e300, math.Inf(1), math.Inf(-1)} {
		text, err := rulestate.Value(v).MarshalText()
		require.NoError(t, err)
		var back rulestate.Value
		require.NoError(t, back.UnmarshalText(text))
		require.Equal(t, v, float64(back))
	}
	var v rulestate.Value
	require.NoError(t, v.UnmarshalText([]byte("NaN")))
	require.True(t, math.IsNaN(float64(v)))
	require.Error(t, v.UnmarshalText([]byte("x")))
}

const limit = 1 << 20

func commit(t *testing.T, store rulestate.Store, g *rulestate.Group, etag string) (string, error) {
	t.Helper()
	return rulestate.Commit(t.Context(), store, "t", g, etag, limit, "--x")
}

func TestCommit(t *testing.T) {
	store := memstore.New(memstore.Settings{})
	empty, etag, err := rulestate.Read(t.Context(), store, "t", "web", "availability")
	require.NoError(t, err)
	require.Empty(t, etag)
	require.Equal(t, &rulestate.Group{Version: 1, Namespace: "web", Name: "availability"}, empty)
	g := example()
	first, err := commit(t, store, g, "")
	require.NoError(t, err)
	back, etag, err := rulestate.Read(t.Context(), store, "t", "web", "availability")
	require.NoError(t, err)
	require.Equal(t, first, etag)
	require.Equal(t, g, back)
	require.Equal(t, []string{key.RuleState("t", "web", "availability")}, store.Keys())

	second, err := commit(t, store, example(), first)
	require.NoError(t, err)
	for _, old := range []string{"", first} {
		_, err = commit(t, store, example(), old)
		require.ErrorIs(t, err, rulestate.ErrOvertaken)
	}
	_, etag, err = rulestate.Read(t.Context(), store, "t", "web", "availability")
	require.NoError(t, err)
	require.Equal(t, second, etag)

	_, err = rulestate.Commit(t.Context(), store, "t", example(), second, 100, "--x")
	var large *rulestate.LargeError
	require.ErrorAs(t, err, &large)
	require.ErrorContains(t, err, "the limit is 100: divide the group, let its rules write fewer series, or raise --x")
}

// TestCommitFindsItsOwnEffect: a client repeats a put whose answer was lost, and the condition then
// fails because of its own effect.
func TestCommitFindsItsOwnEffect(t *testing.T) {
	lost := errors.New("lost")
	fail := memstore.Fault{}
	store := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Put {
			return fail
		}
		return memstore.Fault{}
	}})
	fail = memstore.Fault{Err: lost, When: memstore.After}
	_, err := commit(t, store, example(), "")
	require.ErrorIs(t, err, lost, "the effect is not known")
	fail = memstore.Fault{}
	_, etag, err := rulestate.Read(t.Context(), store, "t", "web", "availability")
	require.NoError(t, err)
	require.NotEmpty(t, etag)

	again := repeating{store}
	_, err = commit(t, again, example(), etag)
	require.NoError(t, err)
}

// repeating puts everything twice and returns the second answer.
type repeating struct{ *memstore.Store }

func (r repeating) Put(ctx context.Context, key string, body io.ReadSeeker, cond objstore.Condition) (string, error) {
	if _, err := r.Store.Put(ctx, key, body, cond); err != nil {
		return "", err
	}
	if _, err := body.Seek(0, 0); err != nil {
		return "", err
	}
	return r.Store.Put(ctx, key, body, cond)
}
