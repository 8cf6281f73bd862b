package queryapp_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

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
