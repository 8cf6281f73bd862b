package api_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/api"
)

// TestRequestsAtTheMemoryLimit: no request begins while the process is above its limit, and a
// waiting request is answered when memory is free again.
func TestRequestsAtTheMemoryLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var used atomic.Int64
		budget := memory.New(1000, memory.Probe{Usage: used.Load, Now: time.Now}, nil)
		h, err := api.New(testSettings(), tenantBackend{withoutStorage(t)}, budget, time.Now, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		require.NoError(t, err)
		ask := func() *httptest.ResponseRecorder {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/api/v1/query?query=1", nil))
			return rec
		}
		require.Equal(t, http.StatusOK, ask().Code)
		used.Store(1001)
		time.Sleep(time.Second) // on the test's clock: the last measurement is old
		rec := ask()
		require.Equal(t, http.StatusServiceUnavailable, rec.Code)
		require.Equal(t, "1", rec.Header().Get("Retry-After"))
		require.Contains(t, rec.Body.String(), `"errorType":"unavailable"`)
		require.Regexp(t, `1000 bytes, it needs 1101.*--memory-limit`, rec.Body.String())

		time.AfterFunc(time.Second, func() { used.Store(10) })
		require.Equal(t, http.StatusOK, ask().Code)
	})
}

// hungry is a Backend whose reads hold memory until their request ends.
type hungry struct {
	*tsdbBackend
	used *atomic.Int64
}

func (b hungry) Querier(int64, int64) (storage.Querier, error) {
	return hungryQuerier{used: b.used}, nil
}

type hungryQuerier struct {
	storage.Querier
	used *atomic.Int64
}

func (hungryQuerier) Close() error { return nil }

func (q hungryQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	if err := memory.Of(ctx).Charge(500); err != nil {
		return storage.ErrSeriesSet(err)
	}
	q.used.Store(1001)
	<-ctx.Done()
	q.used.Store(0)
	return storage.ErrSeriesSet(ctx.Err())
}

// TestRequestsAreEndedBeyondTheMemoryLimit: the answer to an ended request names the limit, and its
// memory is released.
func TestRequestsAreEndedBeyondTheMemoryLimit(t *testing.T) {
	var used atomic.Int64
	budget := memory.New(1000, memory.Probe{Usage: used.Load, Now: time.Now}, nil)
	go budget.Watch(t.Context())
	h, err := api.New(testSettings(), hungry{withoutStorage(t), &used}, budget, time.Now, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	srv := httptest.NewServer(h)
	defer srv.Close()
	for _, path := range []string{"/api/v1/series?match[]=x", "/federate?match[]=x"} {
		resp, err := http.Get(srv.URL + path)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusUnprocessableEntity, resp.StatusCode, "%s: %s", path, body)
		require.Contains(t, string(body), "--memory-limit", path)
		require.NoError(t, budget.Acquire(t.Context(), 1000), path)
		budget.Release(1000)
	}
}
