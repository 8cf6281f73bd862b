package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
)

// TestDividedQueriesHaveTheRightsOfTheirSender: workers check the sender's token. The process that
// divides a query evaluates itself what they refuse, and refuses what the sender may not read.
func TestDividedQueriesHaveTheRightsOfTheirSender(t *testing.T) {
	files := [2]string{filepath.Join(t.TempDir(), "tokens.json"), filepath.Join(t.TempDir(), "tokens.json")}
	for i, tenants := range []string{"team-a,team-b", "team-a"} { // b may not read at the worker
		writeDocument(t, files[i], auth.Document{Version: auth.Version, Tokens: []auth.Entry{
			entry(t, "a", "team-a", "read,write"), entry(t, "both", tenants, "read,write"), entry(t, "ops", "*", "admin"),
		}})
	}
	s := defaults()
	s.Process.Store, s.Process.Auth.Tokens = "file://"+t.TempDir(), "file:"+files[1]
	worker := start(t, s)
	defer worker.end(t)
	s.Process.Auth.Tokens = "file:" + files[0]
	s.Query.Query.Workers, s.Query.Query.DivideBytes, s.Query.Query.DivideWindows = []string{strings.TrimPrefix(worker.url, "http://")}, 1, -1
	srv := start(t, s)
	defer srv.end(t)
	a, b, ops := caller{token: "a"}, caller{"both", "team-b"}, caller{token: "ops"}
	require.NoError(t, a.write(t, srv.url, "of_a"))
	require.NoError(t, b.write(t, srv.url, "of_b"))
	now := time.Now().Unix()
	ranged := func(expr string) string {
		return srv.url + "/api/v1/query_range?" + url.Values{"query": {expr}, "start": {strconv.FormatInt(now-60, 10)}, "end": {strconv.FormatInt(now+60, 10)}, "step": {"10"}}.Encode()
	}
	pieces := func(result string) string {
		_, body := ops.get(t, srv.url+"/metrics")
		_, n, _ := strings.Cut(body, `promlake_query_pieces_total{result="`+result+`"} `)
		return strings.SplitN(n, "\n", 2)[0]
	}
	code, body := a.get(t, ranged("of_a"))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"of_a"`)
	require.Equal(t, [3]string{"3", "0", "0"}, [3]string{pieces("ok"), pieces("failed"), pieces("local")})
	for _, of := range []struct {
		url     string
		queries int64
	}{{srv.url, 1}, {worker.url, 0}} { // the worker takes part in the query
		_, body = a.get(t, of.url+"/api/v1/status/spending")
		var answer struct {
			Data struct {
				Sources []struct {
					Kind, Name string
					Queries    int64
					Seconds    float64
				}
				Tokens []struct{ Name string }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
		require.Len(t, answer.Data.Sources, 1, body)
		source := answer.Data.Sources[0]
		require.Equal(t, [2]string{"client", "Go-http-client"}, [2]string{source.Kind, source.Name})
		require.Equal(t, of.queries, source.Queries)
		require.Positive(t, source.Seconds)
		require.Equal(t, auth.SumOf("a")[:8], answer.Data.Tokens[0].Name)
	}
	code, body = b.get(t, ranged("of_b"))
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"of_b"`)
	require.Equal(t, [3]string{"3", "3", "3"}, [3]string{pieces("ok"), pieces("failed"), pieces("local")})
	_, body = ops.get(t, worker.url+"/metrics")
	require.Contains(t, body, `promlake_auth_requests_total{result="tenant"} 3`)
	code, _ = caller{}.get(t, ranged("of_a"))
	require.Equal(t, http.StatusUnauthorized, code)
	require.Equal(t, "3", pieces("ok"))

	_, body = a.get(t, srv.url+"/api/v1/explain?"+strings.SplitN(ranged("of_a"), "?", 2)[1])
	var explained struct{ Data struct{ Division string } }
	require.NoError(t, json.Unmarshal([]byte(body), &explained))
	require.Equal(t, "3 slices of its steps, for 1 workers", explained.Data.Division)
	_, body = a.get(t, srv.url+"/api/v1/explain?"+strings.SplitN(ranged("topk(1, sum by (x) (of_a))"), "?", 2)[1])
	require.NoError(t, json.Unmarshal([]byte(body), &explained))
	require.Equal(t, "not divided: the answer of topk depends on the order of series, and its argument does not keep that of the store", explained.Data.Division)
	_, body = a.get(t, worker.url+"/api/v1/explain?query=of_a")
	require.NotContains(t, body, "division")
}
