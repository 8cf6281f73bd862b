package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/admin"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

// counter answers dry runs with their own arguments.
type counter struct{ err error }

func (c counter) Count(ctx context.Context, sets [][]*labels.Matcher, mint, maxt int64) (series, samples, bytes int64, err error) {
	return int64(len(sets)), maxt - mint, int64(len(tenant.From(ctx))), c.err
}

type limitError struct{ error }

func (limitError) QueryLimit() bool { return true }

// server is the API over a store of its own.
type server struct {
	t     *testing.T
	store catalog.Store
	h     http.Handler
	reg   *prometheus.Registry
}

// limited is the number of deletions that a limit refused.
func (s *server) limited(limit string) float64 {
	all, err := s.reg.Gather()
	require.NoError(s.t, err)
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == "promlake_admin_limited_total" && m.GetLabel()[0].GetValue() == limit {
				return m.GetCounter().GetValue()
			}
		}
	}
	s.t.Fatalf("no counter of %s", limit)
	return 0
}

func newServer(t *testing.T, s admin.Settings, c admin.Counter) *server {
	t.Helper()
	store, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	reg := prometheus.NewRegistry()
	return &server{t, store, admin.New(s, store, c, slog.New(slog.DiscardHandler), reg), reg}
}

func (s *server) do(method, target, tenantID, form string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(form))
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if tenantID != "" {
		r.Header.Set(tenant.Header, tenantID)
	}
	rec := httptest.NewRecorder()
	s.h.ServeHTTP(rec, r)
	return rec
}

// tombstones renders those of a tenant.
func (s *server) tombstones(tenantID string) []string {
	m, _, err := catalog.ReadManifest(s.t.Context(), s.store, tenantID)
	require.NoError(s.t, err)
	var out []string
	for _, t := range m.Tombstones {
		line := fmt.Sprintf("%d..%d", t.MinT, t.MaxT)
		for _, x := range t.Matchers {
			line += fmt.Sprintf(" %s%s%s", x.Name, x.Type, x.Value)
		}
		out = append(out, line)
	}
	return out
}

const deletePath, cleanPath = "/api/v1/admin/tsdb/delete_series", "/api/v1/admin/tsdb/clean_tombstones"

func query(pairs ...string) string {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v.Encode()
}

func TestDelete(t *testing.T) {
	always := fmt.Sprintf("%d..%d", key.MinTime, key.MaxTime)
	for _, tc := range []struct {
		name, method, target, tenant, form string
		want                               []string
	}{
		{"all of time", http.MethodPost, deletePath + "?" + query("match[]", "up"), "", "", []string{always + " __name__=up"}},
		{"put", http.MethodPut, deletePath + "?" + query("match[]", `{job=~"a|b",x!="",y!~"z.*"}`), "", "", []string{always + " job=~a|b x!= y!~z.*"}},
		{"range in seconds", http.MethodPost, deletePath + "?" + query("match[]", "up", "start", "1.5", "end", "1700000000.25"), "", "", []string{"1500..1700000000250 __name__=up"}},
		{"RFC 3339", http.MethodPost, deletePath + "?" + query("match[]", "up", "start", "1970-01-01T00:00:01Z", "end", "1970-01-01T01:00:02+01:00"), "", "", []string{"1000..2000 __name__=up"}},
		{"form", http.MethodPost, deletePath, "", query("match[]", "up", "end", "3"), []string{fmt.Sprintf("%d..3000 __name__=up", key.MinTime)}},
		{"several", http.MethodPost, deletePath + "?" + query("match[]", "up", "match[]", "down"), "", "", []string{always + " __name__=up", always + " __name__=down"}},
		{"beyond what keys name", http.MethodPost, deletePath + "?" + query("match[]", "up", "start", "-1e18", "end", "1e18"), "", "", []string{always + " __name__=up"}},
		{"tenant", http.MethodPost, deletePath + "?" + query("match[]", "up"), "team-a", "", []string{always + " __name__=up"}},
		{"below Mimir's prefix", http.MethodPost, "/prometheus" + deletePath + "?" + query("match[]", "up"), "", "", []string{always + " __name__=up"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, admin.Settings{Enabled: true}, counter{})
			rec := s.do(tc.method, tc.target, tc.tenant, tc.form)
			require.Equal(t, http.StatusNoContent, rec.Code, rec.Body)
			require.Empty(t, rec.Body.String())
			id := tc.tenant
			if id == "" {
				id = tenant.Default
			} else {
				require.Empty(t, s.tombstones(tenant.Default))
			}
			require.Equal(t, tc.want, s.tombstones(id))
		})
	}
}

// TestPatterns: every pattern is served, and none conflicts with the query API's.
func TestPatterns(t *testing.T) {
	s := newServer(t, admin.Settings{Enabled: true}, counter{})
	mux := http.NewServeMux()
	mux.Handle("/api/v1/", http.NotFoundHandler())
	mux.Handle("/prometheus/api/v1/", http.NotFoundHandler())
	for _, p := range admin.Patterns() {
		mux.Handle(p, s.h)
	}
	for _, p := range admin.Patterns() {
		rec := httptest.NewRecorder()
		mux.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, p+"?match[]=up", nil))
		require.Equal(t, http.StatusNoContent, rec.Code, p)
	}
}

func TestAnswers(t *testing.T) {
	on := admin.Settings{Enabled: true, MaxBodyBytes: 100}
	for _, tc := range []struct {
		name     string
		settings admin.Settings
		counter  counter
		method   string
		target   string
		tenant   string
		form     string
		code     int
		body     string
	}{
		{"too deep", admin.Settings{Enabled: true}, counter{}, http.MethodPost, deletePath + "?match[]=" + strings.Repeat("(", 4001), "", "", 400, `{"status":"error","errorType":"bad_data","error":"expression exceeds the limit of 4000 levels of brackets and operators, it has at least 4001; write it shorter, or raise --query.max-expression-depth"}`},
		{"too long", admin.Settings{Enabled: true, Expressions: expression.Limits{MaxBytes: 9}}, counter{}, http.MethodPost, deletePath + "?match[]=upper&match[]=lower", "", "", 400, `{"status":"error","errorType":"bad_data","error":"expression exceeds the limit of 9 bytes, it has at least 10; write it shorter, or raise --query.max-expression-bytes"}`},
		{"disabled", admin.Settings{}, counter{}, http.MethodPost, deletePath + "?match[]=up", "", "", 503, `{"status":"error","errorType":"unavailable","error":"admin APIs disabled"}`},
		{"cleaning disabled", admin.Settings{}, counter{}, http.MethodPost, cleanPath, "", "", 503, `{"status":"error","errorType":"unavailable","error":"admin APIs disabled"}`},
		{"clean", on, counter{}, http.MethodPost, cleanPath, "", "", 204, ""},
		{"options", on, counter{}, http.MethodOptions, deletePath, "", "", 204, ""},
		{"get", on, counter{}, http.MethodGet, deletePath + "?match[]=up", "", "", 405, "Method Not Allowed\n"},
		{"no match", on, counter{}, http.MethodPost, deletePath, "", "", 400, `{"status":"error","errorType":"bad_data","error":"no match[] parameter provided"}`},
		{"unparseable", on, counter{}, http.MethodPost, deletePath + "?match[]=up%7B", "", "", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"match[]\": 1:4: parse error: unexpected end of input inside braces"}`},
		{"everything", on, counter{}, http.MethodPost, deletePath + "?match[]=%7B%7D", "", "", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"match[]\": match[] must contain at least one matcher"}`},
		{"start", on, counter{}, http.MethodPost, deletePath + "?match[]=up&start=x", "", "", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"start\": invalid time value for 'start': cannot parse \"x\" to a valid timestamp"}`},
		{"order", on, counter{}, http.MethodPost, deletePath + "?match[]=up&start=2&end=1", "", "", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"end\": end timestamp must not be before start timestamp"}`},
		{"dry run of nothing known", on, counter{}, http.MethodPost, deletePath + "?match[]=up&dry_run=perhaps", "", "", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"dry_run\": cannot parse \"perhaps\" to a valid boolean"}`},
		{"dry run", on, counter{}, http.MethodPost, deletePath + "?match[]=up&match[]=down&start=1&end=3&dry_run=true", "abc", "", 200, `{"status":"success","data":{"series":2,"samples":2000,"bytes":3}}`},
		{"dry run beyond a limit", on, counter{limitError{errors.New("too many")}}, http.MethodPost, deletePath + "?match[]=up&dry_run=1", "", "", 422, `{"status":"error","errorType":"execution","error":"count what would be deleted: too many"}`},
		{"dry run fails", on, counter{errors.New("boom")}, http.MethodPost, deletePath + "?match[]=up&dry_run=1", "", "", 500, `{"status":"error","errorType":"internal","error":"count what would be deleted: boom"}`},
		{"tenant", on, counter{}, http.MethodPost, deletePath + "?match[]=up", "a/b", "", 400, `{"status":"error","errorType":"bad_data","error":"tenant ID \"a/b\" contains unsupported character '/'"}`},
		{"body", on, counter{}, http.MethodPost, deletePath, "", "match[]=" + strings.Repeat("u", 100), 413, `{"status":"error","errorType":"bad_data","error":"request body exceeds the limit of 100 bytes"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, tc.settings, tc.counter)
			rec := s.do(tc.method, tc.target, tc.tenant, tc.form)
			require.Equal(t, tc.code, rec.Code, rec.Body)
			require.Equal(t, tc.body, rec.Body.String())
			if strings.HasPrefix(tc.body, "{") {
				require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
				require.True(t, json.Valid(rec.Body.Bytes()))
			}
			require.Empty(t, s.tombstones(tenant.Default), "nothing was deleted")
		})
	}
}

// TestDeletionsAreLimited: seven deletions with matchers of 9 MB made a manifest of 66 MB, which
// every query reads.
func TestDeletionsAreLimited(t *testing.T) {
	big := func(n int) string { return fmt.Sprintf(`{x="%s"}`, strings.Repeat("v", n)) }
	selectors := func(n int, v string) string { return strings.Repeat("match[]="+url.QueryEscape(v)+"&", n) }
	for _, tc := range []struct {
		name, form string
		code       int
		limit      string
		text       string
	}{
		{"one of 9 MB", selectors(1, big(9<<20)), 400, "expression", "expression exceeds the limit of 262144 bytes, it has at least 9437190; write it shorter, or raise --query.max-expression-bytes"},
		{"many of 10 KB", selectors(27, big(10_000)), 400, "expression", "expression exceeds the limit of 262144 bytes, it has at least 270162"},
		{"65 selectors", selectors(65, "up"), 400, "selectors", "65 selectors (match[]), the limit is 64 (--web.max-delete-selectors)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, admin.Settings{Enabled: true}, counter{})
			for _, dry := range []string{"", "dry_run=true"} {
				rec := s.do(http.MethodPost, deletePath, "", tc.form+dry)
				require.Equal(t, tc.code, rec.Code, rec.Body)
				require.Contains(t, rec.Body.String(), tc.text)
			}
			require.Empty(t, s.tombstones(tenant.Default))
			require.Equal(t, 2.0, s.limited(tc.limit))
		})
	}
}

// TestManifestsAreLimited: a tenant whose compaction is behind gets a refusal that states the
// reason, and its manifest stays small.
func TestManifestsAreLimited(t *testing.T) {
	for _, tc := range []struct {
		limit, form string
		accepted    int // requests
		text        string
	}{
		{"tombstones", strings.Repeat("match[]=up&", catalog.MaxTombstones), 1, "4097 deletions in the manifest, the limit is 4096"},
		{"tombstone_bytes", "match[]=" + url.QueryEscape(fmt.Sprintf(`{x="%s"}`, strings.Repeat("v", 65_000))), 16, "1105017 bytes of matchers in the manifest's deletions, the limit is 1048576"},
	} {
		t.Run(tc.limit, func(t *testing.T) {
			s := newServer(t, admin.Settings{Enabled: true, MaxSelectors: catalog.MaxTombstones}, counter{})
			for range tc.accepted {
				rec := s.do(http.MethodPost, deletePath, "", tc.form)
				require.Equal(t, http.StatusNoContent, rec.Code, rec.Body)
			}
			before := s.tombstones(tenant.Default)
			rec := s.do(http.MethodPost, deletePath, "", tc.form)
			require.Equal(t, http.StatusTooManyRequests, rec.Code, rec.Body)
			require.Equal(t, "60", rec.Header().Get("Retry-After"))
			require.Contains(t, rec.Body.String(), tc.text)
			require.Contains(t, rec.Body.String(), "no room for another deletion until compaction has applied earlier ones")
			require.Equal(t, before, s.tombstones(tenant.Default), "all or nothing")
			require.Equal(t, 1.0, s.limited(tc.limit))
		})
	}
}
