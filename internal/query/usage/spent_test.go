package usage_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/usage"
	"github.com/promlake/promlake/tests/support/memstore"
)

// took returns a query of tenant a that took a second and ten requests.
func took(kind, name, token string) *request.Running {
	r := &request.Running{Tenant: "a", Origin: &request.Origin{Token: token, Source: request.Source{Kind: kind, Name: name, Title: strings.ToUpper(name)}}}
	r.Took.Nanoseconds.Store(1e9)
	r.Took.Bytes.Store(1000)
	r.Took.Requests.Store(10)
	return r
}

// names returns kind/name and queries of each source of a report.
func names(r usage.Report, from, to time.Time) map[string]int64 {
	out := map[string]int64{}
	all, _ := r.Spent(from, to)
	for _, s := range all {
		out[s.Kind+"/"+s.Name] = s.Queries
	}
	return out
}

// TestSpent: what queries took outlives processes, by day, source and token.
func TestSpent(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	start := at.at
	a, b := newCounter(saving, store, at.now), newCounter(saving, store, at.now)
	a.Spend(took("dashboard", "x", "t1"), true)
	a.Spend(took("dashboard", "x", ""), true)
	a.Spend(took("dashboard", "y", "t1"), false)
	idle := took("dashboard", "z", "")
	idle.Took.Nanoseconds.Store(0)
	a.Spend(idle, true)
	a.Save(t.Context())
	at.after(24 * time.Hour)
	b.Spend(took("rule_group", "g", ""), true)
	b.Save(t.Context())
	b.Spend(took("rule_group", "g", ""), true)
	r := of(t, b, "a")
	require.Equal(t, map[string]int64{"dashboard/x": 2, "dashboard/y": 0, "token/t1": 1, "rule_group/g": 2}, names(r, start, at.at))
	require.Equal(t, map[string]int64{"rule_group/g": 2}, names(r, at.at, at.at))
	all, total := r.Spent(start, start)
	require.Equal(t, usage.Source{Kind: "dashboard", Name: "x", Spent: usage.Spent{Title: "X", Queries: 2, Microseconds: 2e6, Bytes: 2000, Requests: 20}}, all[0])
	require.Equal(t, usage.Spent{Queries: 2, Microseconds: 3e6, Bytes: 3000, Requests: 30}, total, "a token is no source")
	require.InDelta(t, 3*2*0.0000133334+30*0.0000004+2*0.0000002, total.Dollars(), 1e-9)
	require.Contains(t, read(t, store), `"spent":{"2023-11-14":{"dashboard/x":{"title":"X","queries":2,"microseconds":2000000,"bytes":2000,"requests":20}`)

	at.after(94 * 24 * time.Hour)
	b.Save(t.Context())
	require.Empty(t, names(of(t, newCounter(saving, store, at.now), "a"), start, at.at), "after three months")
}

// TestSpentHasBounds: what has no room counts without its name, first that of the oldest days.
func TestSpentHasBounds(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	start := at.at
	s := saving
	s.Bytes = 2500
	c := newCounter(s, store, at.now)
	for i := range 20 {
		c.Spend(took("dashboard", fmt.Sprint("d", i), ""), true)
	}
	r := of(t, c, "a")
	_, total := r.Spent(start, start)
	require.Equal(t, int64(20), total.Queries)
	require.Equal(t, int64(1), names(r, start, start)["dashboard/d0"])
	require.Greater(t, names(r, start, start)["dashboard/"], int64(5))
	for range 3 {
		c.Save(t.Context())
		at.after(24 * time.Hour)
		for i := range 8 {
			c.Spend(took("dashboard", fmt.Sprint("d", i), ""), true)
		}
	}
	c.Save(t.Context())
	require.Less(t, len(read(t, store)), 5000)
	r = of(t, c, "a")
	require.Equal(t, map[string]int64{"dashboard/": 20}, names(r, start, start))
	require.Equal(t, int64(1), names(r, at.at, at.at)["dashboard/d7"])
	_, total = r.Spent(start, at.at)
	require.Equal(t, int64(44), total.Queries)
}

// TestAllowances: a tenant and a token may spend so much on a day and in a month.
func TestAllowances(t *testing.T) {
	at, store := newClock(), known(t, memstore.Settings{})
	writer, c := newCounter(saving, store, at.now), newCounter(saving, store, at.now)
	within := func(token string, ofTenant, ofToken auth.Allowance) error {
		at.after(2 * time.Minute)
		return c.Within(t.Context(), "a", ofTenant, token, ofToken)
	}
	none := auth.Allowance{}
	cent, second := auth.Allowance{Day: 0.01, Month: 0.02}, 2*0.0000133334
	require.NoError(t, within("", cent, none))
	const many = 500
	for range many {
		writer.Spend(took("client", "x", "t1"), true)
	}
	writer.Save(t.Context())
	require.Greater(t, many*second, 0.01)
	var limit *request.LimitError
	require.ErrorAs(t, within("", cent, none), &limit)
	require.True(t, limit.CostLimit())
	require.Regexp(t, `^the queries of tenant a have taken \$0\.0154\d\d in this day \(UTC\), and the limit is \$0\.010000; it is --query\.max-dollars-per-day, or max_query_dollars_per_day of the tenant or the token$`, limit.Error())
	require.ErrorContains(t, within("t1", none, cent), "token t1")
	require.NoError(t, within("t2", none, cent), "another token")
	require.NoError(t, within("t1", auth.Allowance{Day: 1}, auth.Allowance{Month: 1}))
	at.after(24 * time.Hour)
	require.NoError(t, within("t1", cent, cent), "on the next day")
	for range many {
		c.Spend(took("client", "x", "t1"), true)
	}
	require.ErrorContains(t, within("", auth.Allowance{Month: 0.02}, none), "in this month")
	at.after(20 * 24 * time.Hour)
	require.NoError(t, within("t1", cent, cent), "in the next month")
}
