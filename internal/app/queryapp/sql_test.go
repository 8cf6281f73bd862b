package queryapp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query"
)

// ask sends a statement as a form and returns the answer.
func ask(t *testing.T, base string, form url.Values, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/v1/sql", strings.NewReader(form.Encode()))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

const xs = "SELECT metric, labels, labels['job'] AS job, value FROM samples WHERE metric = 'x' ORDER BY job"

func TestSQLFormats(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	wantJSON := `{"status":"success","data":{"columns":[{"name":"metric","type":"VARCHAR"},{"name":"labels","type":"MAP(VARCHAR, VARCHAR)"},` +
		`{"name":"job","type":"VARCHAR"},{"name":"value","type":"DOUBLE"}],"rows":[["x",{"job":"a"},"a",1],["x",{"job":"b"},"b",1],["x",{"job":"c"},"c",1]]}}`
	wantCSV := "metric,labels,job,value\nx,\"{\"\"job\"\":\"\"a\"\"}\",a,1\nx,\"{\"\"job\"\":\"\"b\"\"}\",b,1\nx,\"{\"\"job\"\":\"\"c\"\"}\",c,1\n"
	resp, body := ask(t, base, url.Values{"query": {xs}})
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	require.Equal(t, wantJSON, body)
	resp, body = ask(t, base, url.Values{"query": {xs}}, "Accept", "text/html, text/csv;q=0.5")
	require.Equal(t, "text/csv; charset=utf-8; header=present", resp.Header.Get("Content-Type"))
	require.Equal(t, wantCSV, body)
	resp, body = ask(t, base, url.Values{"query": {xs}, "format": {"csv"}}, "Accept", "application/json")
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, wantCSV, body, "format is stronger than Accept")

	resp, body = ask(t, base, url.Values{"query": {xs}}, "Accept", "application/vnd.apache.arrow.stream")
	require.Equal(t, "application/vnd.apache.arrow.stream", resp.Header.Get("Content-Type"))
	r, err := ipc.NewReader(strings.NewReader(body))
	require.NoError(t, err)
	rows := int64(0)
	for r.Next() {
		rows += r.RecordBatch().NumRows()
	}
	require.NoError(t, r.Err())
	require.Equal(t, int64(3), rows)

	resp, body = ask(t, base, url.Values{"query": {xs}, "format": {"parquet"}})
	require.Equal(t, "application/vnd.apache.parquet", resp.Header.Get("Content-Type"))
	f, err := parquet.OpenFile(strings.NewReader(body), int64(len(body)))
	require.NoError(t, err)
	require.Equal(t, int64(3), f.NumRows())
}

func TestSQLValues(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	_, body := ask(t, base, url.Values{"query": {`SELECT NULL, true, 1::TINYINT, 18446744073709551615::UBIGINT, 170141183460469231731687303715884105727::HUGEINT, 1.50::DECIMAL(9,2),
		'NaN'::DOUBLE, '-inf'::DOUBLE, 1e300, -0.0::DOUBLE, 'a"b' || chr(10), DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05.678', TIMESTAMPTZ '2026-01-02 03:04:05+01',
		[1, NULL], {'a': 1, 'b': 'x'}, map {'k': [1.5::DOUBLE]}, map {1: 'x'}, 'ab'::BLOB, uuid '00000000-0000-0000-0000-000000000001', 'y'::ENUM('x', 'y'), INTERVAL 1 HOUR`}})
	var got struct {
		Data struct {
			Rows [][]json.RawMessage `json:"rows"`
		} `json:"data"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got), body)
	var cells []string
	for _, c := range got.Data.Rows[0] {
		cells = append(cells, string(c))
	}
	require.Equal(t, []string{
		"null", "true", "1", "18446744073709551615", "170141183460469231731687303715884105727", "1.50",
		`"NaN"`, `"-Inf"`, "1e+300", "-0", `"a\"b\n"`, `"2026-01-02"`, `"2026-01-02T03:04:05.678"`, `"2026-01-02T02:04:05Z"`,
		"[1,null]", `{"a":1,"b":"x"}`, `{"k":[1.5]}`, `[[1,"x"]]`, `"YWI="`, `"00000000-0000-0000-0000-000000000001"`, `"y"`,
		`{"months":0,"days":0,"nanoseconds":3600000000000}`,
	}, cells)
}

func TestSQLRequests(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	post := func(body string) (int, string) {
		resp, err := http.Post(base+"/prometheus/api/v1/sql", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(b)
	}
	for _, tc := range []struct{ body, want string }{
		{`{"query":"SELECT count(*) FROM samples WHERE labels['job'] = $1 AND value < ?2","params":["a",1.5],"format":"csv"}`, "count_star()\n1\n"},
		{`{"query":"SELECT $x, $Y + 1, $z, $n","params":{"X":"it's","y":2,"z":true,"n":null},"format":"csv"}`, "'it''s',(2 + 1),CAST('t' AS BOOLEAN),NULL\nit's,3,true,\n"},
		{`{"query":"SELECT count(*) FROM samples","as_of":"2020-01-01T00:00:00Z","format":"csv"}`, "count_star()\n0\n"},
		{`{"query":"SELECT $1"}`, "the statement has 1 parameters, and params has 0 values"},
		{`{"query":"SELECT 1","params":[1]}`, "the statement has 0 parameters, and params has 1 values"},
		{`{"query":"SELECT count(*) FROM samples JOIN (SELECT unnest($jobs) AS job) ON labels['job'] = job","params":{"jobs":["a","c","d"]},"format":"csv"}`, "count_star()\n2\n"},
		{
			`{"query":"SELECT typeof($1) AS count, typeof($2) AS b, typeof($3) AS c, typeof($4) AS d, $1[2] AS e, $2[3] AS f, $3[1] AS g","params":[["it's","\"\\"],[1,2.5,null],[9223372036854775807],[]],"format":"csv"}`,
			"count,b,c,d,e,f,g\nVARCHAR[],DOUBLE[],BIGINT[],VARCHAR[],\"\"\"\\\",,9223372036854775807\n",
		},
		{`{"query":"SELECT $1","params":[{"a":1}]}`, "is not a string, number, boolean or null, nor a list"},
		{`{"query":"SELECT $1","params":[[[1]]]}`, "has a value that is not a string, number, boolean or null"},
		{`{"query":"SELECT $1","params":[[1,"a"]]}`, "has values of the types BIGINT and VARCHAR"},
		{`{"query":"SELECT $1","params":[["\u0000"]]}`, "has a NUL character"},
		{`{"query":"SELECT $1","params":[[1e999]]}`, "is not a number of 64 bits"},
		{`{"query":"SELECT $1","params":7}`, "params is not a JSON array"},
		{`{"query":"SELECT 1","formt":"csv"}`, "unknown field"},
		{`{"query":`, "read the body as a JSON object"},
		{`{"query":"SELECT 1","format":"xml"}`, `want json, csv, arrow or parquet, got \"xml\"`},
		{`{}`, `parameter \"query\" is missing`},
		{`{"query":"SELECT 1","as_of":"x"}`, "as_of"},
	} {
		code, body := post(tc.body)
		if strings.HasPrefix(tc.want, "'") || strings.HasPrefix(tc.want, "count") {
			require.Equal(t, 200, code, body)
			require.Equal(t, tc.want, body)
			continue
		}
		require.Contains(t, []int{400, 422}, code, tc.body)
		require.Contains(t, body, tc.want)
		require.Contains(t, body, `"status":"error","errorType":"`)
	}
	code, body := get(t, base+"/api/v1/sql?format=csv&query="+url.QueryEscape("SELECT count(*) AS n FROM series"))
	require.Equal(t, 200, code)
	require.Equal(t, "n\n3\n", body)
}

func TestSQLErrors(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	for _, tc := range []struct {
		query string
		code  int
		want  string
	}{
		{"SELECT a FROM samples", 400, `Referenced column \"a\" not found`},
		{"SELECT sum(metric) FROM samples", 400, "No function matches"},
		{"SELEC", 400, "syntax error"},
		{"SELECT value::INT FROM (SELECT metric AS value FROM samples)", 422, "Could not convert string 'x'"},
		{"DROP VIEW samples", 400, "the statement is not a query; want one SELECT"},
		{"SELECT read_text('x')", 400, "read_text"},
	} {
		resp, body := ask(t, base, url.Values{"query": {tc.query}})
		require.Equal(t, tc.code, resp.StatusCode, body)
		require.Contains(t, body, tc.want)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	}
}

func TestSQLLimits(t *testing.T) {
	for _, tc := range []struct {
		flag, query string
		set         func(*query.Settings)
	}{
		{"--sql.max-rows", "FROM range(11)", func(s *query.Settings) { s.SQL.MaxRows = 10 }},
		{"--sql.max-plan-bytes", "SELECT 1 AS a, a + a AS b, b + b AS c, c + c AS d, d + d AS e, e + e AS f, f + f AS g", func(s *query.Settings) { s.SQL.MaxPlanBytes = 1 << 20 }},
		{"--sql.max-result-bytes", "FROM range(11)", func(s *query.Settings) { s.SQL.MaxBytes = 10 }},
		{"--query.max-series", "FROM samples", func(s *query.Settings) { s.MaxSeries = 2 }},
		{"--query.max-series", "FROM series", func(s *query.Settings) { s.MaxSeries = 2 }},
		{"--query.max-fetched-bytes", "FROM samples", func(s *query.Settings) { s.MaxFetchedBytes = 1 }},
		{"--query.max-memory", "SELECT count(DISTINCT range) FROM range(10000000)", func(s *query.Settings) { s.QueryMemoryBytes, s.SpillBytes = 20<<20, 1<<20 }},
	} {
		s := settings.Default[queryapp.Settings]()
		tc.set(&s.Query)
		resp, body := ask(t, serve(t, s), url.Values{"query": {tc.query}})
		require.Equal(t, 422, resp.StatusCode, body)
		require.Contains(t, body, tc.flag)
	}
}

// TestRangeQueriesFromInside: a range query has at most the steps of /api/v1/query_range, wherever it
// is asked.
func TestRangeQueriesFromInside(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	const call = "FROM promql('vector(1)', TIMESTAMPTZ '1970-01-01', %s, INTERVAL 1 MILLISECOND)"
	for _, prefix := range []string{"", "EXPLAIN ", "EXPLAIN ANALYZE ", "DESCRIBE ", "SUMMARIZE "} {
		resp, body := ask(t, base, url.Values{"query": {prefix + fmt.Sprintf(call, "now()")}})
		require.Equal(t, 400, resp.StatusCode, body)
		require.Contains(t, body, "exceeded maximum resolution of 11,000 points", prefix)
	}
	code, body := get(t, base+"/api/v1/explain?query=vector(1)&start=0&end=11.001&step=0.001")
	require.Equal(t, 400, code, body)
	require.Contains(t, body, "exceeded maximum resolution of 11,000 points")
	resp, body := ask(t, base, url.Values{"query": {"SELECT count(*) AS n " + fmt.Sprintf(call, "TIMESTAMPTZ '1970-01-01 00:00:11'")}, "format": {"csv"}})
	require.Equal(t, 200, resp.StatusCode, body)
	require.Equal(t, "n\n11001\n", body)
	resp, body = ask(t, base, url.Values{"query": {`FROM promql('label_replace(vector(1), "", "", "", "")', now(), now(), INTERVAL 1 MINUTE)`}})
	require.Equal(t, 422, resp.StatusCode, body)
	require.Contains(t, body, "invalid destination label name in label_replace()")
}

// TestSQLEndsWithItsTime: a statement ends at the timeout, and when its client is gone.
func TestSQLEndsWithItsTime(t *testing.T) {
	const endless = "SELECT count(*) FROM range(1000000000000) a WHERE hash(a.range) = 1"
	s := settings.Default[queryapp.Settings]()
	s.Query.MaxConcurrency = 1
	base := serve(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/v1/sql?query="+url.QueryEscape(endless), nil)
	require.NoError(t, err)
	time.AfterFunc(100*time.Millisecond, cancel)
	_, err = http.DefaultClient.Do(req)
	require.ErrorIs(t, err, context.Canceled)
	resp, body := ask(t, base, url.Values{"query": {"SELECT 1"}}) // the only place is free again
	require.Equal(t, 200, resp.StatusCode, body)

	s.Query.Timeout = 300 * time.Millisecond
	resp, body = ask(t, serve(t, s), url.Values{"query": {endless}})
	require.Equal(t, 503, resp.StatusCode, body)
	require.Contains(t, body, "--query.timeout")
}

// TestSQLBreaksOff: an error after a part of the result was sent ends the connection.
func TestSQLBreaksOff(t *testing.T) {
	base := serve(t, settings.Default[queryapp.Settings]())
	resp, err := http.Get(base + "/api/v1/sql?format=csv&query=" + url.QueryEscape("SELECT CASE WHEN range = 900000 THEN error('midway') ELSE 'x' || range END FROM range(1000000)"))
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	_, err = io.ReadAll(resp.Body)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}
