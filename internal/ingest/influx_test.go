package ingest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// lines sends a body of the line protocol and returns the answer.
func (l *lake) lines(version InfluxVersion, target, body string, headers ...string) *httptest.ResponseRecorder {
	l.t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	l.stage.LineHandler(version).ServeHTTP(w, r)
	if l.queue != nil {
		require.Empty(l.t, l.consume(), "%s", &l.log)
	}
	return w
}

func gzipped(t *testing.T, text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

// TestLines writes the line protocol through each version of the API in each mode: what is durable
// afterwards is what remote-write would have stored.
func TestLines(t *testing.T) {
	for _, mode := range []Mode{Grouped, Buffered, Direct} {
		for _, tc := range []struct {
			version      InfluxVersion
			target, body string
		}{
			{InfluxV1, "/write?db=telegraf", fmt.Sprintf("cpu,host=a v=1,s=\"text\",up=true %d\n", int64(someTime)*1_000_000)},
			{InfluxV1, "/write?db=telegraf&precision=s", fmt.Sprintf("cpu,host=a v=1,s=\"text\",up=true %d\n", int64(someTime)/1000)},
			{InfluxV2, "/api/v2/write?org=o&bucket=telegraf&precision=ms", fmt.Sprintf("cpu,host=a v=1,s=\"text\",up=t %d", int64(someTime))},
			{InfluxV3, "/api/v3/write_lp?db=telegraf", fmt.Sprintf("cpu,host=a v=1,s=\"text\",up=t %d", int64(someTime)/1000)},
			{InfluxV3, "/api/v3/write_lp?db=telegraf&accept_partial=false", "cpu,host=a v=1,s=\"text\",up=t"},
		} {
			for _, packed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/gzip=%t", mode, tc.target, packed), func(t *testing.T) {
					l := calmIn(t, mode)
					body, headers := tc.body, []string{}
					if packed {
						body, headers = gzipped(t, body), []string{"Content-Encoding", "gzip"}
					}
					w := l.lines(tc.version, tc.target, body, headers...)
					require.Equal(t, http.StatusNoContent, w.Code, w.Body)
					require.Equal(t, "1", w.Header().Get(stringsSkipped))
					require.Equal(t, want(t, protocolV1, []item{
						{Lset: []string{"__name__", "cpu_up", "db", "telegraf", "host", "a"}, Floats: gauge("", at(secondOf(tc.target), 1)).Floats},
						{Lset: []string{"__name__", "cpu_v", "db", "telegraf", "host", "a"}, Floats: gauge("", at(secondOf(tc.target), 1)).Floats},
					}), l.read(anonymous))
				})
			}
		}
	}
}

// secondOf is someTime with the precision of a request (ms).
func secondOf(target string) int64 {
	u, _ := url.Parse(target)
	if u.Query().Get("precision") == "s" || strings.HasPrefix(target, "/api/v3") && !u.Query().Has("accept_partial") {
		return someTime / 1000 * 1000
	}
	return someTime
}

func TestLinesRefused(t *testing.T) {
	const good = "cpu v=1\n"
	for _, tc := range []struct {
		version        InfluxVersion
		target, body   string
		headers        []string
		code, stored   int
		want, category string
	}{
		{InfluxV1, "/write", good + "cpu\n", nil, 400, 1, "line 2: missing fields (invalid_line)", ""},
		{InfluxV2, "/api/v2/write", good + "cpu\ncpu\n", nil, 400, 1, "and 1 more offences; what is valid was stored", "invalid"},
		{InfluxV3, "/api/v3/write_lp", good + "cpu\n", nil, 400, 1, "line 2: missing fields (invalid_line)", ""},
		{InfluxV3, "/api/v3/write_lp?accept_partial=false", good + "cpu\n", nil, 400, 0, "line 2: missing fields (invalid_line); nothing was stored", ""},
		{InfluxV3, "/api/v3/write_lp?accept_partial=perhaps", good, nil, 400, 0, `accept_partial "perhaps" is neither true nor false`, ""},
		{InfluxV1, "/write?precision=d", good, nil, 400, 0, `precision "d" is not one of`, ""},
		{InfluxV2, "/api/v2/write", good, []string{"Content-Encoding", "br"}, 415, 0, "br encoding is not supported, only gzip", "invalid"},
		{InfluxV1, "/write", "no gzip", []string{"Content-Encoding", "gzip"}, 400, 0, "invalid request body: gzip", ""},
		{InfluxV1, "/write", gzipped(t, strings.Repeat(good, 100))[:30], []string{"Content-Encoding", "gzip"}, 400, 0, "invalid request body: gzip", ""},
		{InfluxV1, "/write", gzipped(t, strings.Repeat(good, 10<<20)), []string{"Content-Encoding", "gzip"}, 413, 0, "max-decoded-bytes", ""},
		{InfluxV2, "/api/v2/write", strings.Repeat(good, 3<<20), nil, 413, 0, "max-request-bytes", "request too large"},
		{InfluxV1, "/write", good, []string{"X-Scope-OrgID", "../x"}, 400, 0, "invalid tenant", ""},
	} {
		t.Run(fmt.Sprintf("%s %.20q", tc.target, tc.want), func(t *testing.T) {
			l := calm(t)
			w := l.lines(tc.version, tc.target, tc.body, tc.headers...)
			require.Equal(t, tc.code, w.Code, w.Body)
			var answer map[string]any
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
			if tc.version == InfluxV2 {
				require.Contains(t, answer["message"], tc.want)
				require.Equal(t, tc.category, answer["code"])
			} else {
				if _, listed := answer["data"]; !listed { // of version 3; see TestRefusedLinesOfV3
					require.Contains(t, answer["error"], tc.want)
				}
				require.Contains(t, w.Header().Get("X-Influxdb-Error"), tc.want)
			}
			require.Len(t, l.keys(anonymous), tc.stored)
		})
	}
}

// TestRefusedLinesOfV3: InfluxDB 3 lists the refused lines, with their numbers and reasons.
func TestRefusedLinesOfV3(t *testing.T) {
	l := calm(t)
	long := "cpu,host=" + strings.Repeat("x", 3000) + " v=1"
	body := "cpu v=1\n# comment\n\ncpu\r\ns t=\"two\nlines\",v=1\ncpu v=2,w=3 9000000000\n" + long + "\ncpu,host=b v=\xff"
	w := l.lines(InfluxV3, "/api/v3/write_lp?precision=second", body)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.True(t, strings.HasPrefix(w.Body.String(), `{"error":"partial write of line protocol occurred","data":[`+
		`{"original_line":"cpu","line_number":4,"error_message":"missing fields (invalid_line)"},`+
		`{"original_line":"cpu v=2,w=3 9000000000","line_number":7,"error_message":"timestamp 9000000000000 ms is too far in the future: `), w.Body)
	var answer struct{ Data []influxOffence }
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Len(t, answer.Data, 4, "both fields of a line have the same offence")
	require.Equal(t, influxOffence{"cpu,host=b v=�", 9, `value "\xff" is neither a number, a boolean nor a string in quotes (invalid_line)`}, answer.Data[2])
	require.Equal(t, 8, answer.Data[3].Number)
	require.Equal(t, long[:maxOriginal], answer.Data[3].Line)
	require.Contains(t, answer.Data[3].Message, `value of label "host" is longer than the limit of 2048 bytes`)
	require.Len(t, l.read(anonymous), 2)

	w = l.lines(InfluxV3, "/api/v3/write_lp?accept_partial=false&precision=second", body)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, `{"error":"parsing failed for write_lp endpoint","data":`+
		`{"original_line":"cpu","line_number":4,"error_message":"missing fields (invalid_line)"}}`+"\n", w.Body.String())
	w = l.lines(InfluxV3, "/api/v3/write_lp", strings.Repeat("bad\n", 500))
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Len(t, answer.Data, maxOffences)
}

func TestInfluxQuery(t *testing.T) {
	for q, want := range map[string]string{
		"q=SHOW+DATABASES&db=telegraf":     `{"results":[{"statement_id":0,"series":[{"name":"databases","columns":["name"],"values":[["telegraf"]]}]}]}`,
		"q=show+databases%3B":              `{"results":[{"statement_id":0,"series":[{"name":"databases","columns":["name"],"values":[]}]}]}`,
		"q=CREATE+DATABASE+%22telegraf%22": `{"results":[{"statement_id":0}]}`,
		"q=SELECT+*+FROM+cpu":              `{"error":"only SHOW DATABASES and CREATE DATABASE are answered; /api/v1/query answers PromQL"}`,
	} {
		for _, r := range []*http.Request{
			httptest.NewRequest(http.MethodGet, "/query?"+q, nil),
			httptest.NewRequest(http.MethodPost, "/query", strings.NewReader(q)),
		} {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			InfluxQuery().ServeHTTP(w, r)
			require.JSONEq(t, want, w.Body.String(), q)
			require.Equal(t, strings.Contains(want, "error"), w.Code == http.StatusBadRequest)
		}
	}
	w := httptest.NewRecorder()
	InfluxPing().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/ping", nil))
	require.Equal(t, http.StatusNoContent, w.Code)
	require.NotEmpty(t, w.Header().Get("X-Influxdb-Version"))
}

// TestManyNewSeries: the first request of a sender has many series that are new and share the text
// of their tags, which takes far more memory than its bytes.
func TestManyNewSeries(t *testing.T) {
	var lines, text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&lines, "cpu,host=server-%d a=%d,b=2,c=3,d=4\n", i, i)
		fmt.Fprintf(&text, "up{i=\"%d\"} 1\n", i)
	}
	for name, tc := range map[string]struct {
		send   func(*lake) *httptest.ResponseRecorder
		series int
	}{
		"lines": {func(l *lake) *httptest.ResponseRecorder { return l.lines(InfluxV1, "/write", lines.String()) }, 20_000},
		"text":  {func(l *lake) *httptest.ResponseRecorder { return l.text("/", text.String()) }, 5_000},
	} {
		for _, mode := range []Mode{Grouped, Buffered, Direct} {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				l := calmIn(t, mode)
				w := tc.send(l)
				require.Equal(t, http.StatusNoContent, w.Code, w.Body)
				require.Len(t, l.read(anonymous), tc.series)
			})
		}
	}
	set := quick()
	set.MaxRequestBytes, set.MaxDecodedBytes, set.MaxInflightBytes = 1<<20, 1<<20, 3<<20
	w := calmWith(t, Grouped, set).lines(InfluxV1, "/write", lines.String())
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code, w.Body)
	require.Contains(t, w.Body.String(), "max-inflight-bytes")
}
