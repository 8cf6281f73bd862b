package compactapp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// parts are those of a process a week after two segments of one window were written.
func parts(t *testing.T) (process.Parts, chan struct{}) {
	t.Helper()
	now, ready := time.Now(), make(chan struct{})
	var later atomic.Int64
	store := memstore.New(memstore.Settings{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	for i := range byte(2) {
		body, _, err := segmenttest.Encode([]segment.Row{{
			Labels: labels.FromStrings(model.MetricNameLabel, "up"), Floats: []segment.Float{{T: now.UnixMilli() + int64(i), V: 1}},
		}}, nil)
		require.NoError(t, err)
		s := key.Segment{Tenant: "a", Window: key.WindowOf(now.UnixMilli())}
		require.NoError(t, s.ID.SetTime(ulid.Timestamp(now)))
		s.ID[15] = i
		_, err = store.Put(t.Context(), s.String(), bytes.NewReader(body), objstore.Condition{IfAbsent: true})
		require.NoError(t, err)
	}
	later.Store(int64(7 * 24 * time.Hour))
	return process.Parts{
		Store: store, Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Ready: ready,
		Now: time.Now,
	}, ready
}

func manifest(t *testing.T, p process.Parts) catalog.Manifest {
	t.Helper()
	m, _, err := catalog.ReadManifest(t.Context(), p.Store, "a")
	require.NoError(t, err)
	return m
}

func TestBackgroundCompactsOnceTheProcessIsReady(t *testing.T) {
	p, ready := parts(t)
	stage, err := compactapp.Background(nil, compactapp.DefaultSettings(), false, time.Millisecond)(t.Context(), p)
	require.NoError(t, err)
	require.Empty(t, stage.Routes())
	require.Empty(t, manifest(t, p).Blocks)
	close(ready)
	require.Eventually(t, func() bool { m := manifest(t, p); return len(m.Blocks) == 1 && m.Blocks[0].Samples == 2 }, time.Minute, time.Millisecond)
	require.NoError(t, stage.Drain(t.Context()))
	require.NoError(t, stage.Close())
}

func TestBackgroundEndsBeforeTheProcessIsReady(t *testing.T) {
	p, _ := parts(t)
	stage, err := compactapp.Background(nil, compactapp.DefaultSettings(), false, time.Millisecond)(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, stage.Drain(t.Context()))
	require.NoError(t, stage.Close())
	require.Zero(t, manifest(t, p).Generation)
}

func TestOnRequest(t *testing.T) {
	p, _ := parts(t)
	stage, err := compactapp.OnRequest(compactapp.DefaultSettings(), compactapp.Workers{})(t.Context(), p)
	require.NoError(t, err)
	mux := http.NewServeMux()
	for _, r := range stage.Routes() {
		mux.Handle(r.Pattern, r.Handler)
	}
	ask := func(method string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(method, compactapp.Path, nil))
		return w
	}
	require.Equal(t, http.StatusMethodNotAllowed, ask(http.MethodGet).Code)
	require.Zero(t, manifest(t, p).Generation)

	w := ask(http.MethodPost)
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var reply struct {
		Status string
		Data   map[string]any
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &reply))
	require.Equal(t, "success", reply.Status)
	require.NotEmpty(t, reply.Data)
	require.Len(t, manifest(t, p).Blocks, 1)

	require.NoError(t, stage.Drain(t.Context()))
	require.Equal(t, http.StatusInternalServerError, ask(http.MethodPost).Code, "draining")
	require.NoError(t, stage.Close())
}

func TestBadSettings(t *testing.T) {
	p, _ := parts(t)
	s := compactapp.DefaultSettings()
	s.SettleDelay = -1
	for _, build := range []process.Builder{compactapp.Background(nil, s, false, time.Minute), compactapp.OnRequest(s, compactapp.Workers{})} {
		_, err := build(t.Context(), p)
		require.ErrorContains(t, err, "start compaction: ")
	}
}

func TestSettings(t *testing.T) {
	want, err := compact.Settings{}.WithDefaults()
	require.NoError(t, err)
	s := compactapp.DefaultSettings()
	got, err := s.Stage().WithDefaults()
	require.NoError(t, err)
	require.Equal(t, want, got)
	s.JobTimeout /= 3
	s.Rollups = false
	got, err = s.Stage().WithDefaults()
	require.NoError(t, err)
	require.Equal(t, want.MaxJobSamples/3, got.MaxJobSamples, "less time, smaller jobs")
	require.True(t, got.WithoutRollups)
}
