package process

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/probe"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestLostBucket: also the request that finds another bucket in the place of the one that was
// opened is answered with 503, and other errors stay 500.
func TestLostBucket(t *testing.T) {
	bucket := &struct{ objstore.Store }{memstore.New(memstore.Settings{})}
	now := time.Unix(1_700_000_000, 0)
	root, err := probe.NewRooted(t.Context(), bucket, nil, slog.New(slog.DiscardHandler), func() time.Time { return now })
	require.NoError(t, err)
	root.AllowWrites()
	_, err = root.Put(t.Context(), "v1/a/x", strings.NewReader("x"), objstore.Condition{})
	require.NoError(t, err)
	now = now.Add(time.Minute)
	g := &gate{}
	g.open(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := root.Get(r.Context(), "v1/a/x", 0, -1); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	}), root)
	ask := func() *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/object", http.NoBody))
		return w
	}
	require.Equal(t, http.StatusOK, ask().Code)
	require.NoError(t, root.Delete(t.Context(), "v1/a/x"))
	require.Equal(t, http.StatusInternalServerError, ask().Code)
	bucket.Store = memstore.New(memstore.Settings{})
	now = now.Add(time.Minute)
	for range 2 {
		w := ask()
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Contains(t, w.Body.String(), probe.ErrRoot.Error())
	}
}
