package api_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
)

// long is a label value of almost the maximum length.
var long = strings.Repeat("x", 12<<20)

// verbose answers with one series whose labels exceed the buffers of sockets.
type verbose struct{ *tsdbBackend }

func (verbose) Querier(int64, int64) (storage.Querier, error) { return verboseQuerier{}, nil }

type verboseQuerier struct{ storage.Querier }

func (verboseQuerier) Close() error { return nil }

func (verboseQuerier) Select(context.Context, bool, *storage.SelectHints, ...*labels.Matcher) storage.SeriesSet {
	return &oneSeries{series: promql.NewStorageSeries(promql.Series{
		Metric: labels.FromStrings("__name__", "x", "a", long, "b", long, "c", long),
		Floats: []promql.FPoint{{T: time.Now().UnixMilli(), F: 1}},
	})}
}

// TestClientsThatDoNotReadAreCutOff waits for the end of the handler, which only the write deadline
// can end.
func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	settings := testSettings()
	settings.WriteTimeout = 100 * time.Millisecond
	h, ended := newHandler(t, settings, verbose{withoutStorage(t)}), make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", srv.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /api/v1/series?match[]=x HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	<-ended
}

// deadlines is a connection that records its write deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestEachPieceHasItsTime: each piece extends the deadline, and the connection has none in the end.
func TestEachPieceHasItsTime(t *testing.T) {
	settings := testSettings()
	settings.WriteTimeout = time.Hour
	h := newHandler(t, settings, verbose{withoutStorage(t)})
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(d, httptest.NewRequest(http.MethodGet, "/api/v1/series?match[]=x", nil))
	require.Greater(t, d.Body.Len(), 3*len(long))
	require.GreaterOrEqual(t, len(d.set), d.Body.Len()/(64<<10))
	last := len(d.set) - 1
	require.True(t, d.set[last].IsZero())
	for _, at := range d.set[:last] {
		require.Greater(t, time.Until(at), 10*time.Minute)
	}
}

// stuck is a Backend whose reads of tenant a block until the test releases them.
type stuck struct {
	*tsdbBackend
	entered, free chan struct{}
}

func (b stuck) Querier(int64, int64) (storage.Querier, error) { return stuckQuerier{stuck: b}, nil }

type stuckQuerier struct {
	storage.Querier
	stuck
}

func (stuckQuerier) Close() error { return nil }

func (q stuckQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	if tenant.From(ctx) == "a" {
		q.entered <- struct{}{}
		<-q.free
	}
	return storage.EmptySeriesSet()
}

// TestNoTenantHasAllRemoteReads: a tenant's request is answered while another tenant has as many
// remote reads running as it may, and further ones waiting.
func TestNoTenantHasAllRemoteReads(t *testing.T) {
	settings := testSettings()
	settings.RemoteReadConcurrency = 4
	b := stuck{withoutStorage(t), make(chan struct{}), make(chan struct{})}
	h := newHandler(t, settings, b)
	read := func(ctx context.Context, id string) int {
		r := reading(false)(t).WithContext(ctx)
		r.Header.Set(tenant.Header, id)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec.Code
	}
	codes := make(chan int, 5)
	for range cap(codes) {
		go func() { codes <- read(t.Context(), "a") }()
	}
	<-b.entered
	<-b.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, 499, read(ctx, "a"), "who waits is let go with its client")
	select {
	case <-b.entered:
		t.Fatal("a tenant has more than half of the remote reads")
	default:
	}
	require.Equal(t, http.StatusOK, read(t.Context(), "b"))
	close(b.free)
	for range 3 {
		<-b.entered
	}
	for range cap(codes) {
		require.Equal(t, http.StatusOK, <-codes)
	}
}
