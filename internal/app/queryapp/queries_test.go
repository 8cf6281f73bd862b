package queryapp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query/request"
)

type listedQuery struct {
	ID, Duration, Query, Path, State string
	Start, End, Step                 int64
	Source                           request.Source
}

// running lists the queries that run.
func running(t *testing.T, base string) (out []listedQuery) {
	code, body := get(t, base+"/api/v1/status/active_queries")
	require.Equal(t, http.StatusOK, code, body)
	var answer struct{ Data []listedQuery }
	require.NoError(t, json.Unmarshal([]byte(body), &answer))
	return answer.Data
}

// send sends a request with headers, by name and value.
func send(t *testing.T, method, u string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, u, nil)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

// TestActiveQueries: what runs, and what waits for it, is listed, and ends when it is told to.
func TestActiveQueries(t *testing.T) {
	const endless = "SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"
	s := settings.Default[queryapp.Settings]()
	s.Query.MaxConcurrency = 1
	base := serve(t, s)
	require.Empty(t, running(t, base))
	type answer struct {
		code int
		body string
	}
	ask := func(u string, headers ...string) chan answer {
		out := make(chan answer, 1)
		go func() {
			resp, body := send(t, http.MethodGet, base+u, headers...)
			out <- answer{resp.StatusCode, body}
		}()
		return out
	}
	listed := func(n int) (all []listedQuery) {
		require.Eventually(t, func() bool { all = running(t, base); return len(all) == n && all[0].State == "running" }, 2*time.Minute, 10*time.Millisecond)
		return all
	}
	end := func(id string, headers ...string) (int, string) {
		resp, body := send(t, http.MethodDelete, base+"/api/v1/status/active_queries?id="+id, headers...)
		return resp.StatusCode, body
	}
	slow := ask("/api/v1/sql?query="+url.QueryEscape(endless), "X-Dashboard-Uid", "abc", "X-Dashboard-Title", "Gr%C3%B6%C3%9Fe+1")
	one := listed(1)[0]
	require.Equal(t, listedQuery{
		ID: one.ID, Duration: one.Duration, Query: endless, Path: "/api/v1/sql", State: "running", Source: request.Source{Kind: "dashboard", Name: "abc", Title: "Größe+1"},
	}, one)
	waiting := ask("/prometheus/api/v1/query_range?query=sum(x)&start=1000&end=2000&step=10", "X-Rule-Uid", "r1", "User-Agent", "Grafana/12.1.0")
	both := listed(2)
	require.Equal(t, listedQuery{
		ID: both[1].ID, Duration: both[1].Duration, Query: "sum(x)", Path: "/api/v1/query_range", State: "waiting", Start: 1_000_000, End: 2_000_000, Step: 10_000, Source: request.Source{Kind: "alert_rule", Name: "r1"},
	}, both[1])

	code, body := end(one.ID, "X-Scope-OrgID", "other")
	require.Equal(t, http.StatusNotFound, code, "a query of another tenant")
	require.Contains(t, body, "no query")
	code, body = end("")
	require.Equal(t, http.StatusBadRequest, code, body)
	code, body = end(both[1].ID)
	require.Equal(t, http.StatusNoContent, code, body)
	got := <-waiting
	require.Equal(t, 499, got.code)
	require.Contains(t, got.body, `"errorType":"canceled"`)
	require.Contains(t, got.body, "a request for /api/v1/status/active_queries has ended query "+both[1].ID)
	code, body = end(one.ID)
	require.Equal(t, http.StatusNoContent, code, body)
	got = <-slow
	require.Equal(t, 499, got.code, got.body)
	require.Contains(t, got.body, "has ended query "+one.ID)
	require.Empty(t, running(t, base))
	code, _ = end(one.ID)
	require.Equal(t, http.StatusNotFound, code)
	resp, body := send(t, http.MethodGet, base+"/api/v1/query?query=x")
	require.Equal(t, http.StatusOK, resp.StatusCode, body)
	require.Regexp(t, `^querier_wall_time;dur=\d+\.\d{3}, bytes_processed;val=\d+, store_requests;val=\d+$`, resp.Header.Get("Server-Timing"))
	resp, _ = send(t, http.MethodGet, base+"/api/v1/status/buildinfo")
	require.Empty(t, resp.Header.Get("Server-Timing"), "it ran no query")
}

// TestActiveQueriesOfSeveralTenants: each of the tenants lists and ends a query of both.
func TestActiveQueriesOfSeveralTenants(t *testing.T) {
	s := settings.Default[queryapp.Settings]()
	s.Query.MaxConcurrency = 1
	base := serve(t, s)
	for _, id := range []string{"anonymous", "b"} {
		slow, waiting := make(chan int, 1), make(chan int, 1)
		get := func(u string, out chan int, headers ...string) {
			resp, _ := send(t, http.MethodGet, base+u, headers...)
			out <- resp.StatusCode
		}
		go get("/api/v1/sql?query="+url.QueryEscape("SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"), slow, "X-Scope-OrgID", "c")
		listed := func(id, path string) (found string) {
			require.Eventually(t, func() bool {
				_, body := send(t, http.MethodGet, base+"/api/v1/status/active_queries", "X-Scope-OrgID", id)
				var answer struct{ Data []listedQuery }
				require.NoError(t, json.Unmarshal([]byte(body), &answer))
				for _, q := range answer.Data {
					if q.Path == path {
						found = q.ID
					}
				}
				return found != ""
			}, 2*time.Minute, 10*time.Millisecond)
			return found
		}
		blocking := listed("c", "/api/v1/sql")
		go get("/api/v1/query?query=x", waiting, "X-Scope-OrgID", "anonymous|b")
		end := func(id, query string) {
			resp, body := send(t, http.MethodDelete, base+"/api/v1/status/active_queries?id="+query, "X-Scope-OrgID", id)
			require.Equal(t, http.StatusNoContent, resp.StatusCode, body)
		}
		end(id, listed(id, "/api/v1/query"))
		require.Equal(t, 499, <-waiting)
		end("c", blocking)
		require.Equal(t, 499, <-slow)
	}
}

type spent struct {
	Kind, Name, Title        string
	Queries, Bytes, Requests int64
	Seconds, Dollars         float64
}

// TestSpending: each query counts for its source, also one that exports, reads remotely or is SQL.
func TestSpending(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	for _, path := range []string{"query?query=x", "query?query=x", "export?match[]=x", "sql?query=SELECT%201", "labels"} {
		resp, body := send(t, http.MethodGet, base+"/api/v1/"+path, "X-Dashboard-Uid", "abc", "X-Panel-Id", "1")
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
	}
	for _, forged := range []string{"{", `{"kind":"token","name":"x"}`} { // no sources
		resp, body := send(t, http.MethodGet, base+"/api/v1/query?query=x", "User-Agent", "curl/8.1", request.SourceHeader, forged)
		require.Equal(t, http.StatusOK, resp.StatusCode, body)
	}
	var answer struct {
		Data struct {
			Since, Start, End int64
			Total             spent
			Sources, Tokens   []spent
		}
	}
	ask := func(params string) {
		code, body := get(t, base+"/api/v1/status/spending"+params)
		require.Equal(t, http.StatusOK, code, body)
		answer.Data.Sources = nil
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
	}
	ask("")
	queries := map[string]int64{}
	for _, s := range answer.Data.Sources {
		queries[s.Kind+"/"+s.Name] = s.Queries
		require.Positive(t, s.Seconds)
		require.Zero(t, s.Dollars, "the store is a directory")
	}
	require.Equal(t, map[string]int64{"dashboard/abc": 5, "client/curl": 2}, queries)
	require.Equal(t, int64(7), answer.Data.Total.Queries)
	require.InDelta(t, answer.Data.Sources[0].Seconds+answer.Data.Sources[1].Seconds, answer.Data.Total.Seconds, 1e-9)
	require.GreaterOrEqual(t, answer.Data.Sources[0].Seconds, answer.Data.Sources[1].Seconds)
	ask("?limit=1")
	require.Len(t, answer.Data.Sources, 1)
	ask("?start=1000&end=" + strconv.FormatInt(time.Now().Add(-48*time.Hour).Unix(), 10))
	require.Empty(t, answer.Data.Sources)
	code, body := get(t, base+"/api/v1/status/spending?start=2000&end=1000")
	require.Equal(t, http.StatusBadRequest, code, body)
	code, body = get(t, base+"/api/v1/status/spending/tenants")
	require.Equal(t, http.StatusOK, code, body)
	var all struct {
		Data []struct {
			Tenant  string
			Queries int64
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	require.Len(t, all.Data, 1)
	require.Equal(t, "anonymous", all.Data[0].Tenant)
	require.Equal(t, int64(7), all.Data[0].Queries)
}
