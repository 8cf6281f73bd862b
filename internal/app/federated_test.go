package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/request"
)

// TestSeveralTenants: a query reads from all tenants that its header names, and its token may read.
func TestSeveralTenants(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens.json")
	writeDocument(t, file, auth.Document{Version: auth.Version, Tokens: []auth.Entry{
		entry(t, "all", "*", "read,write"), entry(t, "ab", "a,b", "read,write"),
	}})
	s := defaults()
	s.Process.Store, s.Process.Auth.Tokens = "file://"+t.TempDir(), "file:"+file
	s.Query.API.MaxTenants, s.Query.Query.Cost = 3, request.CostLimits{Series: 6}
	srv := start(t, s)
	defer srv.end(t)
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, caller{"all", id}.write(t, srv.url, "x"))
		require.NoError(t, caller{"all", id}.write(t, srv.url, "only_"+id))
	}
	labelsOf := func(c caller, expr string) (out []string) {
		code, body := c.ask(t, srv.url, expr)
		require.Equal(t, http.StatusOK, code, body)
		var answer struct {
			Data struct {
				Result []struct {
					Metric map[string]string
					Value  [2]any
				}
			}
		}
		require.NoError(t, json.Unmarshal([]byte(body), &answer))
		for _, r := range answer.Data.Result {
			out = append(out, labels.FromMap(r.Metric).String()+" "+r.Value[1].(string))
		}
		return out
	}
	ab, three := caller{"ab", "b|a|b"}, caller{"all", "a|b|c"}
	for _, test := range []struct {
		who  caller
		expr string
		want []string
	}{
		{ab, "x", []string{`{__name__="x", __tenant_id__="a"} 1`, `{__name__="x", __tenant_id__="b"} 1`}},
		{ab, "sum(x)", []string{"{} 2"}},
		{ab, "max_over_time(x[1h])", []string{`{__tenant_id__="a"} 1`, `{__tenant_id__="b"} 1`}},
		{three, `count by (__tenant_id__) ({__name__=~"x|only_.*",__tenant_id__!~"b|d"})`, []string{`{__tenant_id__="a"} 2`, `{__tenant_id__="c"} 2`}},
		{three, `{__tenant_id__="c"}`, []string{`{__name__="only_c", __tenant_id__="c"} 1`, `{__name__="x", __tenant_id__="c"} 1`}},
		{three, `only_a or only_b`, []string{`{__name__="only_a", __tenant_id__="a"} 1`, `{__name__="only_b", __tenant_id__="b"} 1`}},
		{three, `x{__tenant_id__="d"}`, nil},
		{caller{"all", "a"}, `{__name__=~".+"}`, []string{`{__name__="only_a"} 1`, `{__name__="x"} 1`}},
	} {
		require.ElementsMatch(t, test.want, labelsOf(test.who, test.expr), test.expr)
	}
	for path, want := range map[string]string{
		"/api/v1/label/__tenant_id__/values":                        `["a","b","c"]`,
		"/api/v1/label/__name__/values":                             `["only_a","only_b","only_c","x"]`,
		`/api/v1/label/__name__/values?match[]={__tenant_id__="b"}`: `["only_b","x"]`,
		"/api/v1/labels":                      `["__name__","__tenant_id__"]`,
		"/prometheus/api/v1/series?match[]=x": `[{"__name__":"x","__tenant_id__":"a"},{"__name__":"x","__tenant_id__":"b"},{"__name__":"x","__tenant_id__":"c"}]`,
		`/api/v1/query_exemplars?query=x{__tenant_id__="a"}&start=0&end=1`: `[]`,
	} {
		code, body := three.get(t, srv.url+path)
		require.Equal(t, http.StatusOK, code, body)
		require.JSONEq(t, `{"status":"success","data":`+want+`}`, body, path)
	}

	code, body := ab.get(t, srv.url+"/api/v1/query?cost=true&query=x")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"estimated":{"seriesTouched":2,`)
	code, body = three.ask(t, srv.url, `{__name__=~".+",__tenant_id__=~".+"} or x`)
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, "it needs 9 at most, by its estimate")
	code, body = caller{"ab", "a|c"}.ask(t, srv.url, "x")
	require.Equal(t, http.StatusForbidden, code, body)
	require.Contains(t, body, `not for tenant \"c\"`)
	code, body = caller{"all", "a|b|c|d"}.ask(t, srv.url, "x")
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, body, "names 4 tenants, and a query may read from 3; raise --tenant-federation.max-tenants")
	for _, id := range []string{"a|", "|", "a|b/c", "a| b"} {
		code, body = caller{"all", id}.ask(t, srv.url, "x")
		require.Equal(t, http.StatusBadRequest, code, body)
	}
	for _, path := range []string{"/api/v1/sql?query=SELECT%201", "/api/v1/explain?query=x", "/api/v1/export?match[]=x", "/api/v1/status/tsdb", "/federate?match[]=x", "/api/v1/status/spending"} {
		code, body = ab.get(t, srv.url+path)
		require.Equal(t, http.StatusBadRequest, code, body)
		require.Contains(t, body, "answers from one tenant, and the header X-Scope-OrgID names 2")
	}
	require.Error(t, caller{"all", "a|b"}.write(t, srv.url, "x"))
	code, body = caller{"all", "a|b"}.get(t, srv.url+"/prometheus/config/v1/rules?"+url.Values{}.Encode())
	require.Equal(t, http.StatusBadRequest, code, body)

	for _, id := range []string{"a", "b"} {
		code, body = caller{"all", id}.get(t, srv.url+"/api/v1/status/spending")
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, body, `"name":"`+auth.SumOf("ab")[:8]+`"`, "each of several tenants pays")
	}
	require.Equal(t, "__tenant_id__", tenant.Label)
}
