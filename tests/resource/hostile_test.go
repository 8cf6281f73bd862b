package resource

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// population is the number of series for the attacks on labels.
const population = 20_000

// populate writes the series of the attacks.
func (s *server) populate() {
	s.t.Helper()
	all := series("up", population, 10)
	for len(all) > 0 {
		n := min(len(all), 5000)
		require.Equal(s.t, http.StatusNoContent, s.post(s.t.Context(), "/api/v1/write", writeType, writeV1(all[:n])).code)
		all = all[n:]
	}
}

// query sends a POST, and requires an answer within twice the time limit of queries.
func (s *server) query(path string, form url.Values) answer {
	s.t.Helper()
	a := s.post(s.t.Context(), path, formType, []byte(form.Encode()))
	require.Less(s.t, a.took, 2*queryTimeout, "%s: %d %.300s", path, a.code, a.body)
	require.NotZero(s.t, a.code, "no answer from %s:\n%s", path, s.log)
	return a
}

func instant(expr string) url.Values { return url.Values{"query": {expr}} }

// ranged returns a query over a day with steps of 15 s.
func ranged(expr string) url.Values {
	now := time.Now().Unix()
	return url.Values{"query": {expr}, "start": {fmt.Sprint(now - 86_400)}, "end": {fmt.Sprint(now)}, "step": {"15"}}
}

// expressions returns hostile expressions.
func expressions() map[string]string {
	join := "up"
	for i := range 30 {
		join = fmt.Sprintf(`label_join(%s, "l%d", "-", "instance", "job", "number", "l%d")`, join, i, i-1)
	}
	replace := "up"
	for i := range 20 {
		replace = fmt.Sprintf(`label_replace(%s, "l%d", "%s", "instance", ".*")`, replace, i, strings.Repeat("$0", 200))
	}
	return map[string]string{
		"subquery of a hundred years": "sum_over_time(vector(1)[100y:1ms])",
		"subquery of a month":         "sum_over_time(vector(1)[30d:1ms])",
		"one value at many steps":     fmt.Sprintf("sum_over_time((up @ %d)[40d:1s])", time.Now().Unix()),
		"many values at many steps":   fmt.Sprintf("last_over_time((sum by (instance) (up @ %d))[20d:1s])", time.Now().Unix()),
		"nested subqueries":           "sum_over_time(sum_over_time(vector(1)[1d:1s])[1d:1s])",
		"deep functions":              strings.Repeat("ln(", 2_500_000) + "up" + strings.Repeat(")", 2_500_000),
		"long sum":                    "1" + strings.Repeat("-1", 10_000),
		"longer sum":                  "1" + strings.Repeat("-1", 200_000),
		"parentheses":                 strings.Repeat("(", 4_900_000) + "1" + strings.Repeat(")", 4_900_000),
		"unclosed parentheses":        strings.Repeat("(", 9_800_000),
		"label_join":                  join,
		"label_replace":               replace,
		"product of series":           "up * on() group_left() up",
		"many steps":                  "sort(up)",
		"long regular expression":     `up{instance=~"` + strings.Repeat("(a|b)*", 9000) + `"}`,
	}
}

// TestHostileExpressions sends each hostile expression to every endpoint that accepts one, one at a
// time and then all at once.
func TestHostileExpressions(t *testing.T) {
	s := start(t)
	s.populate()
	ask := func(expr string) {
		s.query("/api/v1/query", instant(expr))
		s.query("/api/v1/query_range", ranged(expr))
		s.query("/api/v1/explain", instant(expr))
		s.query("/api/v1/format_query", instant(expr))
		s.query("/api/v1/parse_query", instant(expr))
		s.query("/api/v1/query_exemplars", ranged(expr))
		s.query("/api/v1/series", url.Values{"match[]": {expr}})
		s.query("/api/v1/labels", url.Values{"match[]": {expr}})
	}
	for name, expr := range expressions() {
		ask(expr)
		s.idle()
		s.holds()
		t.Logf("%s: at most %d MiB so far", name, s.most.Load()>>20)
	}
	var all sync.WaitGroup
	for _, expr := range expressions() {
		all.Go(func() {
			for _, path := range []string{"/api/v1/query", "/api/v1/query_range"} {
				s.post(t.Context(), path, formType, []byte(ranged(expr).Encode()))
			}
		})
	}
	all.Wait()
	s.recovers()
}

// TestQueriesEndWithTheirClients disconnects while hostile queries run.
func TestQueriesEndWithTheirClients(t *testing.T) {
	s := start(t)
	s.populate()
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for name, expr := range expressions() {
		if len(expr) < 10_000 {
			all.Go(func() { s.post(ctx, "/api/v1/query_range", formType, []byte(ranged(expr).Encode())) })
			t.Log(name)
		}
	}
	// some queries run by then, no matter which; the state that counts is checked below
	time.Sleep(time.Second)
	leave()
	all.Wait()
	s.recovers()
}

// statements returns statements of SQL whose plans are exponential, or that ask for more steps than a
// range query may have.
func statements() map[string]string {
	chain := func(part string) string {
		text := "WITH a0 AS (SELECT 1 AS x)"
		for i := range 30 {
			text += fmt.Sprintf(", a%d AS NOT MATERIALIZED (%s)", i+1, strings.ReplaceAll(part, "@", fmt.Sprintf("a%d", i)))
		}
		return text + " FROM a30"
	}
	aliases, nested := "SELECT 1 AS a0", "1"
	for i := range 30 {
		aliases += fmt.Sprintf(", a%d + a%d AS a%d", i, i, i+1)
		nested = "CASE nullif(" + nested + ", 7) WHEN 1 THEN 1 WHEN 2 THEN 2 END"
	}
	return map[string]string{
		"joined queries": chain("SELECT l.x FROM @ l JOIN @ r USING (x)"),
		"united queries": "EXPLAIN " + chain("FROM @ UNION ALL FROM @"),
		"columns":        "DESCRIBE " + chain("SELECT *, * FROM @"),
		"aliases":        aliases,
		"cases":          "SELECT " + nested,
		"promql":         "FROM promql('vector(1)', TIMESTAMPTZ '1970-01-01', now(), INTERVAL 1 MILLISECOND)",
	}
}

// TestHostileStatements sends each statement, then all at once, and leaves them.
func TestHostileStatements(t *testing.T) {
	s := start(t)
	for name, text := range statements() {
		a := s.query("/api/v1/sql", instant(text))
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusServiceUnavailable}, a.code, a.body)
		s.idle()
		s.holds()
		t.Logf("%s: %d, at most %d MiB so far", name, a.code, s.most.Load()>>20)
	}
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for _, text := range statements() {
		all.Go(func() { s.post(ctx, "/api/v1/sql", formType, []byte(instant(text).Encode())) })
	}
	s.serves()
	leave()
	all.Wait()
	s.recovers()
}

// dial opens a connection and sends text.
func (s *server) dial(text string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = conn.Close() })
	_, err = conn.Write([]byte(text))
	require.NoError(s.t, err)
	return conn
}

// TestHostileWriters stall, flood and scatter; other tenants and other writers of the same tenant
// continue.
func TestHostileWriters(t *testing.T) {
	s := start(t)
	announced := fmt.Sprintf("POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s\xfe\xfe\xfe\xfe\xfe\xfe", 16<<20, binary.AppendUvarint(nil, 60<<20))
	for range 200 {
		s.dial(announced)
	}
	for _, tenant := range []string{"anonymous", "team-a"} {
		a := s.do(t.Context(), http.MethodPost, "/api/v1/write", writeType, strings.NewReader(string(writeV1(series("m", 1, 1)))), "X-Scope-OrgID", tenant)
		require.Equal(t, http.StatusNoContent, a.code, a.body)
	}
	a := s.post(t.Context(), "/api/v1/write", writeType, windows(1000))
	require.Equal(t, http.StatusBadRequest, a.code)
	require.Contains(t, a.body, "max-windows-per-request")

	// Concurrent requests of about 1.8 MB, each with its own series.
	var all sync.WaitGroup
	for i := range 24 {
		body := writeV1(series(fmt.Sprintf("flood_%d", i), 60_000, 2))
		all.Go(func() {
			for s.post(t.Context(), "/api/v1/push", writeType, body).code == http.StatusServiceUnavailable {
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
	all.Wait()
	s.recovers()
}

// TestHostileReaders: clients that do not read their answers do not block others.
func TestHostileReaders(t *testing.T) {
	s := start(t)
	s.populate()
	body := remoteRead(false)
	for range 10 {
		s.dial(fmt.Sprintf("POST /api/v1/read HTTP/1.1\r\nHost: localhost\r\nX-Scope-OrgID: anonymous\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	}
	for range 10 {
		s.dial("GET /api/v1/query?query=up HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	s.serves()
	a := s.do(t.Context(), http.MethodPost, "/api/v1/read", writeType, strings.NewReader(string(body)), "X-Scope-OrgID", "team-a")
	require.Equal(t, http.StatusOK, a.code, "another tenant reads: %s", a.body)
	s.holds()
}

// TestHostileDeletions send matchers of 9 MB.
func TestHostileDeletions(t *testing.T) {
	s := start(t)
	s.populate()
	for i := range 7 {
		form := url.Values{"match[]": {fmt.Sprintf(`{number="%d%s"}`, i, strings.Repeat("x", 9_000_000))}}
		a := s.query("/api/v1/admin/tsdb/delete_series", form)
		require.GreaterOrEqual(t, a.code, 400, "a matcher of 9 MB was taken")
		require.Less(t, a.code, 500, a.body)
	}
	s.serves()
	s.holds()
}

// TestHostilePages sends the requests that a browser sends for a page of another site.
func TestHostilePages(t *testing.T) {
	s := start(t)
	s.populate()
	body := string(writeV1(series("planted", 1, 1)))
	for _, header := range [][]string{{"Origin", "https://evil.example"}, {"Sec-Fetch-Site", "cross-site"}, {"Origin", "null"}} {
		require.Equal(t, http.StatusForbidden, s.do(t.Context(), http.MethodPost, "/api/v1/write", "", strings.NewReader(body), header...).code)
		require.Equal(t, http.StatusForbidden, s.do(t.Context(), http.MethodPost, "/api/v1/admin/tsdb/delete_series?match[]=up", "", nil, header...).code)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.addr+"/api/v1/query?query=up", nil)
	require.NoError(t, err)
	r.Host = "evil.example"
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusForbidden, resp.StatusCode)
	require.Contains(t, s.get(t.Context(), "/api/v1/query?query=count(up)").body, fmt.Sprintf(`"%d"`, population))
	require.NotContains(t, s.get(t.Context(), "/api/v1/query?query=planted").body, "planted")
	s.holds()
}
