package cost

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/promlake/promlake/internal/ingest"
)

// writer converts request bodies to segments.
type writer interface {
	// request writes one body durably.
	request(ctx context.Context, body []byte) error
	// flush writes the queued messages to segments.
	flush(ctx context.Context) error
	// queued returns the bytes of the messages so far and their number.
	queued() (bytes, messages int64)
	close() error
}

func newWriter(f *Flags, p *part, log *slog.Logger, now func() time.Time) (writer, error) {
	if f.Mode == "buffered" {
		return newBuffered(f, p, log, now)
	}
	s, err := newStage(p, log, now, nil, func(set *ingest.Settings) { set.Mode = ingest.Direct })
	if err != nil {
		return nil, err
	}
	return direct{s, s.Handler()}, nil
}

// direct writes one segment per request.
type direct struct {
	stage   *ingest.Stage
	handler http.Handler
}

func (d direct) request(ctx context.Context, body []byte) error { return post(ctx, d.handler, body) }

func (direct) flush(context.Context) error { return nil }

func (direct) queued() (bytes, messages int64) { return 0, 0 }

func (d direct) close() error { return d.stage.Close(context.Background()) }

func post(ctx context.Context, h http.Handler, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "/api/v1/write", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("Content-Type", "application/x-protobuf")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code/100 != 2 {
		return fmt.Errorf("write request: status %d: %s", w.Code, bytes.TrimSpace(w.Body.Bytes()))
	}
	return nil
}
