package ingestapp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/store/queue"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/sqstest"
)

// build makes a stage as a process does.
func build(t *testing.T, s ingest.Settings, store *memstore.Store) (process.Stage, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	stage, err := ingestapp.New(nil, s)(t.Context(), process.Parts{Store: store, Registry: reg, Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, stage.Drain(t.Context()))
		require.NoError(t, stage.Close())
	})
	return stage, reg
}

// TestQueue sends a request to the queue with one stage, and consumes it with another stage whose
// mode is direct.
func TestQueue(t *testing.T) {
	server, there, store := sqstest.Start(t), memqueue.New(memqueue.Settings{}), memstore.New(memstore.Settings{})
	s := ingest.DefaultSettings()
	s.Mode, s.QueueURL = ingest.Buffered, server.Add("write", there)
	front, reg := build(t, s, store)
	raw, err := (&prompb.WriteRequest{Timeseries: []prompb.TimeSeries{{
		Labels: []prompb.Label{{Name: "__name__", Value: "up"}}, Samples: []prompb.Sample{{Timestamp: time.Now().UnixMilli(), Value: 1}},
	}}}).Marshal()
	require.NoError(t, err)
	w := httptest.NewRecorder()
	front.Routes()[0].Handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(snappy.Encode(nil, raw))))
	require.Equal(t, http.StatusNoContent, w.Code, w.Body)
	require.Empty(t, store.Keys())
	n, err := testutil.GatherAndCount(reg, "promlake_queue_chunks_total")
	require.NoError(t, err)
	require.Equal(t, 1, n)

	s.Mode = ingest.Direct
	back, _ := build(t, s, store)
	ms := there.Messages()
	require.Len(t, ms, 1)
	failed, err := back.(process.Consumer).Consume(t.Context(), []lambda.Message{{ID: ms[0].ID, Body: ms[0].Body, Sent: ms[0].Sent}, {ID: "poison", Body: "x"}})
	require.NoError(t, err)
	require.Equal(t, []string{"poison"}, failed)
	require.Len(t, store.Keys(), 1)
}

func TestBadQueue(t *testing.T) {
	s := ingest.DefaultSettings()
	parts := process.Parts{Store: memstore.New(memstore.Settings{}), Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Now: time.Now}
	s.Mode = ingest.Buffered
	_, err := ingestapp.New(nil, s)(t.Context(), parts)
	require.ErrorContains(t, err, "start ingest: ingest settings: ingest.mode: buffered wants the URL of a queue in ingest.queue-url")
	s.QueueURL = "nonsense"
	_, err = ingestapp.New(nil, s)(t.Context(), parts)
	require.ErrorContains(t, err, `start ingest: open queue: want https://host/account/name, got "nonsense"`)
}

// TestRedriveEndsInTime: with too little time left, a command moves nothing, and its answer has
// what is left.
func TestRedriveEndsInTime(t *testing.T) {
	server, dead, to := sqstest.Start(t), memqueue.New(memqueue.Settings{}), memqueue.New(memqueue.Settings{})
	require.NoError(t, dead.Send(t.Context(), queue.Message{Body: "x"}))
	parts := process.Parts{Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)}
	build := ingestapp.OnCommand(ingestapp.Redriving{QueueURL: server.Add("dead", dead)}, server.Add("write", to))
	stage, err := build(t.Context(), parts)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	answer, err := stage.(process.Commanded).Command(ctx, []byte(`{"command": "redrive", "discard_unreadable": true}`))
	require.NoError(t, err)
	text, err := json.Marshal(answer)
	require.NoError(t, err)
	require.JSONEq(t, `{"fates": [], "unreadable": [], "left": 1, "complete": false}`, string(text))
	_, err = ingestapp.OnCommand(ingestapp.Redriving{QueueURL: server.Add("dead", dead)}, "")(t.Context(), parts)
	require.ErrorContains(t, err, "ingest.queue-url: open queue: want https://host/account/name")
}
