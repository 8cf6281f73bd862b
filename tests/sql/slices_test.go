package sql

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// anywhere lets slices of a small store end anywhere.
var anywhere = query.Settings{DivideBytes: 1, DivideWindows: -1}

// united returns the rows of the slices of a question, which another process reads.
func united(t *testing.T, s *explain.Sliced, other *laketest.Lake) []string {
	rows := []string{}
	for _, slice := range s.Slices {
		pin, err := json.Marshal(slice.Snapshot)
		require.NoError(t, err)
		rows = append(rows, other.RowsOf(query.Statement{Text: slice.SQL, Snapshot: pin})...)
	}
	slices.Sort(rows)
	return laketest.WithoutPayloads(rows)
}

// TestSlices: slices that another process reads later have the rows of the undivided question at
// the time of their planning, whatever was written and deleted since.
func TestSlices(t *testing.T) {
	texts := slices.Clone(laketest.PushedQueries)
	if !laketest.Soak {
		rand.Shuffle(len(texts), func(i, k int) { texts[i], texts[k] = texts[k], texts[i] })
		texts = texts[:len(texts)/6]
	}
	texts = append(texts,
		`short`, `sum(rate(short[5m]))`, `limitk(2, short)`, `topk(1, sum by (i) (short))`, `absent(short)`, `short @ start()`, `short @ end() + on(i) short`,
		`short offset 10m`, `short offset -10m`, `max_over_time(short[20m:90s])`, `sum_over_time(short[range()])`, `short - on(i) short offset range()`,
		`short * on(i) short{i=~"[1-3]"} @ end()`, `vector(step())`, `short > bool 1.25e-3`, `count_values("v", short)`, `{i="1",__name__=~"short|.*"} > 1`,
		`quantile(2, short)`, `label_replace(short, "a", "$1", "i", "(.*)")`, `-{i="2"}`, `vector(1)`, `short{i!~"1|\\d\\d"} or on() vector(range())`)
	selectors := []string{`short`, `{i="1"}`, `{__name__=~"m.*",job!=""}`, `short{i=~"1|2",nothing=""}`, `m1{job!~"a.*"}`}
	store := laketest.NewDir(t)
	l, rows := laketest.New(t, store, anywhere), laketest.PushRows()
	for i := range 8 {
		r, from := segment.Row{Labels: labels.FromStrings("__name__", "short", "i", fmt.Sprint(i))}, laketest.Now().Add(-time.Duration(200-20*i)*time.Minute)
		for k := range int64(60) {
			r.Floats = append(r.Floats, segment.Float{T: from.Add(time.Duration(k) * 30 * time.Second).UnixMilli(), V: 0.1 * float64(k*int64(i+1))})
		}
		rows = append(rows, r)
	}
	laketest.WriteMixture(l, tenant.Default, rows)
	start, end, step := laketest.Now().Add(-180*time.Minute), laketest.Now(), 47*time.Second
	planned, want, divided := map[string]*explain.Sliced{}, map[string][]string{}, 0
	plan := func(text string, step time.Duration) *explain.Sliced {
		s, err := l.Slices(t.Context(), request.Question{Text: text, Start: start, End: end, Step: step}, 4)
		require.NoError(t, err, text)
		if s.Undivided == "" {
			require.LessOrEqual(t, len(s.Slices), 4, text)
		}
		divided += len(s.Slices) - 1
		planned[text+step.String()] = s
		return s
	}
	for _, text := range texts {
		plan(text, step)
		want[text+step.String()] = l.Rows("FROM promql($1, $2, $3, $4)", text, start, end, step.String())
	}
	for _, text := range selectors {
		s := plan(text, 0)
		whole := strings.Replace(strings.Replace(s.Slices[0].SQL, moment(s.Slices[0].Upto), moment(end.UnixMilli()), 1), moment(s.Slices[0].From), moment(start.UnixMilli()), 1)
		want[text+"0s"] = l.Rows(whole)
	}
	require.Greater(t, divided, 2*len(texts))
	l.Write(tenant.Default, []segment.Row{{Labels: labels.FromStrings("__name__", "short", "i", "1"), Floats: []segment.Float{{T: end.Add(-time.Hour).UnixMilli(), V: 1e9}, {T: start.Add(time.Hour).UnixMilli(), V: 1e9}}}})
	require.NotEqual(t, want["short"+step.String()], laketest.New(t, store, query.Settings{}).Rows("FROM promql($1, $2, $3, $4)", "short", start, end, step.String()))
	other := laketest.New(t, store, laketest.PushAll)
	for text, s := range planned {
		require.Equal(t, laketest.WithoutPayloads(want[text]), united(t, s, other), text)
	}
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.999") }

// TestSlicesOfManySteps: a query of more steps than one process answers has as many slices as it
// takes, if it can be divided.
func TestSlicesOfManySteps(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	r := segment.Row{Labels: labels.FromStrings("__name__", "m")}
	for k := range int64(600) {
		r.Floats = append(r.Floats, segment.Float{T: laketest.Now().UnixMilli() - k*60_000, V: rand.Float64()})
	}
	slices.Reverse(r.Floats)
	l.Write(tenant.Default, []segment.Row{r})
	year := request.Question{Text: "m", Start: laketest.Now().Add(-365 * 24 * time.Hour), End: laketest.Now(), Step: 15 * time.Second}
	s, err := l.Slices(t.Context(), year, 2)
	require.NoError(t, err)
	require.Len(t, s.Slices, 256)
	next := year.Start.UnixMilli()
	for _, slice := range s.Slices {
		require.Equal(t, next, slice.From)
		next = slice.Upto + 15_000
	}
	require.Equal(t, year.End.UnixMilli()+15_000, next)
	require.Equal(t, 599*4+1, len(united(t, &explain.Sliced{Slices: s.Slices[255:]}, l)))
}

// TestSlicesAreRefused: what has no slices, and snapshots that do not fit.
func TestSlicesAreRefused(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), anywhere)
	laketest.WriteMixture(l, tenant.Default, laketest.PushRows())
	for text, want := range map[string]string{
		"":                        "parse error",
		"sum(":                    "parse error",
		"m1[5m]":                  "invalid expression type",
		"topk(1, sum by (x)(m1))": "cannot be divided: the answer of topk depends on the order of series",
	} {
		_, err := l.Slices(t.Context(), request.Question{Text: text, Start: laketest.Now().Add(-240 * time.Hour), End: laketest.Now(), Step: time.Second}, 2)
		require.ErrorContains(t, err, want, text)
	}
	for _, text := range []string{"rate(m1[5m])", "m1 offset 5m", "m1 @ end()", "1"} {
		_, err := l.Slices(t.Context(), request.Question{Text: text, Start: laketest.Now().Add(-time.Hour), End: laketest.Now()}, 2)
		require.ErrorContains(t, err, "want a plain selector", text)
	}
	hour := request.Question{Text: "m1", Start: laketest.Now().Add(-time.Hour), End: laketest.Now(), Step: time.Minute}
	for step, want := range map[time.Duration]string{time.Microsecond: "step of at least 1ms", time.Millisecond: "at most 110000000 steps"} {
		_, err := l.Slices(t.Context(), request.Question{Text: "m1", Start: hour.End.Add(-200 * 24 * time.Hour), End: hour.End, Step: step}, 2)
		require.ErrorContains(t, err, want)
	}
	s, err := l.Slices(t.Context(), hour, 2)
	require.NoError(t, err)
	pin, err := json.Marshal(s.Slices[0].Snapshot)
	require.NoError(t, err)
	ask := func(l *laketest.Lake, text, pin string) error {
		return l.SQL(t.Context(), query.Statement{Text: text, Format: "json", Snapshot: json.RawMessage(pin)}, &laketest.Result{})
	}
	require.NoError(t, ask(l, s.Slices[0].SQL, string(pin)))
	for text, want := range map[string]string{s.Slices[1].SQL: "its snapshot has", "FROM samples": "its snapshot has", "FROM series": "its snapshot has"} {
		require.ErrorContains(t, ask(l, text, string(pin)), want)
	}
	for old, want := range map[string][2]string{
		`"version":1`:          {`"version":2`, "version 2, this process knows 1"},
		`"tenant":"anonymous"`: {`"tenant":"other"`, `of tenant "other"`},
		`"lookback":300000`:    {`"lookback":1`, "lookback of 300000 ms"},
		`"options":{`:          {`"options":{"start_timestamps":true`, "differ"},
		`"version":1,`:         {`"version":1,"more":1,`, "unknown field"},
		`{"version"`:           {`["version"`, "invalid"},
	} {
		require.ErrorContains(t, ask(l, s.Slices[0].SQL, strings.Replace(string(pin), old, want[0], 1)), want[1])
	}
	for obj, err := range l.Store.(objstore.Lister).List(t.Context(), "", "") {
		require.NoError(t, err)
		require.NoError(t, l.Store.Delete(t.Context(), obj.Key))
	}
	require.ErrorContains(t, ask(laketest.New(t, l.Store, anywhere), s.Slices[0].SQL, string(pin)), "an object of the snapshot is gone")
}
