package queryapp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestAllowance: once the queries of a tenant have taken what they may, queries, exports and remote
// reads are refused; what was counted is still shown, and other tenants go on.
func TestAllowance(t *testing.T) {
	store, now := memstore.New(memstore.Settings{}), time.Unix(1_700_000_000, 0)
	s := settings.Default[queryapp.Settings]()
	s.Query.CacheDir, s.Query.Allowance.Day = t.TempDir(), 1e-12
	reg := prometheus.NewRegistry()
	stage, err := queryapp.New(s)(t.Context(), process.Parts{Store: store, Registry: reg, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }})
	require.NoError(t, err)
	mux := http.NewServeMux()
	for _, r := range stage.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	ask := func(method, target, id string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "/api/v1/"+target, bytes.NewReader(snappy.Encode(nil, nil)))
		r.Header.Set(tenant.Header, id)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	code, body := ask(http.MethodGet, "query?query=x", "a")
	require.Equal(t, http.StatusOK, code, body)
	now = now.Add(2 * time.Minute)
	targets := []string{"query?query=x", "query_range?query=x&start=1&end=2&step=1", "labels", "export?match[]=x", "sql?query=SELECT+1", "read"}
	for _, target := range targets {
		method := http.MethodGet
		if target == "read" {
			method = http.MethodPost
		}
		code, body = ask(method, target, "a")
		require.Equal(t, http.StatusUnprocessableEntity, code, "%s: %s", target, body)
		require.Contains(t, body, "the queries of tenant a have taken $", target)
		require.Contains(t, body, `"errorType":"cost_limit"`, target)
	}
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(`
# HELP promlake_query_limited_total PromQL queries that went beyond a limit, by the flag that raises it.
# TYPE promlake_query_limited_total counter
promlake_query_limited_total{flag="--query.max-dollars-per-day"} %d
`, len(targets))), "promlake_query_limited_total"))
	code, body = ask(http.MethodGet, "status/spending", "a")
	require.Equal(t, http.StatusOK, code, body)
	require.Contains(t, body, `"queries":1`)
	code, body = ask(http.MethodGet, "query?query=x", "b")
	require.Equal(t, http.StatusOK, code, body)
	code, body = ask(http.MethodGet, "query?query=x", "a|b")
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.NoError(t, stage.Close())
}

// TestUsageIsKept: a function saves what queries asked for after requests, and at its end. A
// program that only reads the store does not save.
func TestUsageIsKept(t *testing.T) {
	for name, keep := range map[string]bool{"kept": true, "not kept": false} {
		t.Run(name, func(t *testing.T) {
			store, now := memstore.New(memstore.Settings{}), time.Unix(1_700_000_000, 0)
			_, err := store.Put(t.Context(), "v1/anonymous/x", strings.NewReader(""), objstore.Condition{})
			require.NoError(t, err)
			s := queryapp.ForFunction(settings.Default[queryapp.Settings](), 1<<30, flags.Values{})
			s.KeepUsage, s.Query.CacheDir = keep, t.TempDir()
			stage, err := queryapp.New(s)(t.Context(), process.Parts{
				Store: store, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
			})
			require.NoError(t, err)
			ask := func(expr string) {
				for _, r := range stage.Routes() {
					if strings.HasSuffix(r.Pattern, "/api/v1/") || r.Pattern == "/api/v1/query" {
						w := httptest.NewRecorder()
						r.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/query?query="+expr, nil))
						require.Equal(t, http.StatusOK, w.Code, w.Body)
						return
					}
				}
				t.Fatal("no route")
			}
			saved := func() string {
				b, _, err := objstore.ReadAll(t.Context(), store, "v1/anonymous/usage/queries.json")
				if err != nil {
					require.ErrorIs(t, err, objstore.ErrNotFound)
				}
				return string(b)
			}
			after := stage.(process.Trailing).After
			ask("first")
			after(t.Context())
			require.Empty(t, saved())
			now = now.Add(10 * time.Minute)
			after(t.Context())
			require.Equal(t, keep, strings.Contains(saved(), "first"))
			ask("later")
			require.NotContains(t, saved(), "later")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			require.NoError(t, stage.Drain(ctx))
			require.Equal(t, keep, strings.Contains(saved(), "later"))
			require.NoError(t, stage.Close())
		})
	}
}

// TestAnswersAreKept: a function has written the answers that are kept when its request ends. A
// program that only reads the store keeps none.
func TestAnswersAreKept(t *testing.T) {
	for name, keep := range map[string]bool{"kept": true, "not kept": false} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Settings{})
			row := segment.Row{Labels: laketest.Metric("m")}
			for at := laketest.Now().Add(-4 * 24 * time.Hour); at.Before(laketest.Now()); at = at.Add(time.Minute) {
				row.Floats = append(row.Floats, segment.Float{T: at.UnixMilli(), V: 1})
			}
			laketest.New(t, store, query.Settings{}).WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, []segment.Row{row})
			s := queryapp.ForFunction(settings.Default[queryapp.Settings](), 1<<30, flags.Values{})
			s.KeepUsage, s.Query.CacheDir, s.Query.KeptAnswersSamples = keep, t.TempDir(), 1
			stage, err := queryapp.New(s)(t.Context(), process.Parts{Store: store, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Now: laketest.Now})
			require.NoError(t, err)
			i := slices.IndexFunc(stage.Routes(), func(r process.Route) bool {
				return strings.HasSuffix(r.Pattern, "/api/v1/") || r.Pattern == "/api/v1/query_range"
			})
			w := httptest.NewRecorder()
			end := laketest.Now().Unix()
			stage.Routes()[i].Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("/api/v1/query_range?query=m&step=1h&start=%d&end=%d", end-4*24*3600, end), nil))
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			stage.(process.Trailing).After(t.Context())
			n := 0
			for obj, err := range store.List(t.Context(), key.AnswersPrefix(tenant.Default), "") {
				require.NoError(t, err, obj.Key)
				n++
			}
			require.Equal(t, keep, n > 0)
			require.NoError(t, stage.Close())
		})
	}
}
