package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api/respond"
)

// failing is a Backend whose every access fails with the error that fail returns for the request's
// context.
type failing struct {
	*tsdbBackend
	fail func(context.Context) error
	open bool // opening a querier fails, too
}

func (b failing) Querier(int64, int64) (storage.Querier, error) {
	if b.open {
		return nil, b.fail(context.Background())
	}
	return failingQuerier{failingLabels{b.fail}}, nil
}

func (b failing) ChunkQuerier(int64, int64) (storage.ChunkQuerier, error) {
	if b.open {
		return nil, b.fail(context.Background())
	}
	return failingChunkQuerier{failingLabels{b.fail}}, nil
}

func (b failing) ExemplarQuerier(ctx context.Context) (storage.ExemplarQuerier, error) {
	if b.open {
		return nil, b.fail(ctx)
	}
	return failingExemplars{ctx, b.fail}, nil
}

func (b failing) Metadata(ctx context.Context, _ string) (map[string][]metadata.Metadata, error) {
	return nil, b.fail(ctx)
}

func (b failing) Stats(ctx context.Context, _ int) (*tsdb.Stats, error) {
	return nil, b.fail(ctx)
}

type failingLabels struct{ fail func(context.Context) error }

func (failingLabels) Close() error { return nil }

func (q failingLabels) LabelValues(ctx context.Context, _ string, _ *storage.LabelHints, _ ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, q.fail(ctx)
}

func (q failingLabels) LabelNames(ctx context.Context, _ *storage.LabelHints, _ ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, q.fail(ctx)
}

type failingQuerier struct{ failingLabels }

func (q failingQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.SeriesSet {
	return storage.ErrSeriesSet(q.fail(ctx))
}

type failingChunkQuerier struct{ failingLabels }

func (q failingChunkQuerier) Select(ctx context.Context, _ bool, _ *storage.SelectHints, _ ...*labels.Matcher) storage.ChunkSeriesSet {
	return storage.ErrChunkSeriesSet(q.fail(ctx))
}

type failingExemplars struct {
	ctx  context.Context
	fail func(context.Context) error
}

func (q failingExemplars) Select(int64, int64, ...[]*labels.Matcher) ([]exemplar.QueryResult, error) {
	return nil, q.fail(q.ctx)
}

// tooMuch is a storage's limit error as another package sees it.
type tooMuch struct{}

func (tooMuch) Error() string    { return "query loads more than 5 samples (--query.max-samples=5)" }
func (tooMuch) QueryLimit() bool { return true }

func always(err error) func(context.Context) error {
	return func(context.Context) error { return err }
}

// waiting fails when the request's context ends, with the error of a client that does not name the
// reason.
func waiting(ctx context.Context) error {
	<-ctx.Done()
	return errors.New("get object: request aborted")
}

// readers has one request for every access to the storage.
var readers = map[string]func(t *testing.T) *http.Request{
	"query":         getting("/api/v1/query?query=up"),
	"range":         getting("/api/v1/query_range?query=rate(up[5m])&start=0&end=60&step=60"),
	"series":        getting("/api/v1/series?match[]=up"),
	"series, two":   getting("/api/v1/series?match[]=up&match[]=x"),
	"labels":        getting("/api/v1/labels"),
	"labels, two":   getting("/api/v1/labels?match[]=up&match[]=x"),
	"values":        getting("/api/v1/label/job/values"),
	"values, two":   getting("/api/v1/label/job/values?match[]=up&match[]=x"),
	"exemplars":     getting("/api/v1/query_exemplars?query=up"),
	"metadata":      getting("/api/v1/metadata"),
	"tsdb":          getting("/api/v1/status/tsdb"),
	"federate":      getting("/federate?match[]=up"),
	"read, samples": reading(false),
	"read, chunks":  reading(true),
}

func getting(target string) func(*testing.T) *http.Request {
	return func(*testing.T) *http.Request { return httptest.NewRequest(http.MethodGet, target, nil) }
}

func TestStorageErrors(t *testing.T) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancel := context.WithTimeout(context.Background(), 0)
	t.Cleanup(cancel)
	for _, tc := range []struct {
		name string
		ctx  context.Context
		fail func(context.Context) error
		code int
	}{
		{"limit", nil, always(tooMuch{}), 422},
		{"wrapped limit", nil, always(fmt.Errorf("select series: %w", tooMuch{})), 422},
		{"too many samples", nil, always(promql.ErrTooManySamples("x")), 422},
		{"store fails", nil, always(errors.New("get object: 503 SlowDown")), 500},
		{"store's own deadline", nil, always(fmt.Errorf("get object: %w", context.DeadlineExceeded)), 500},
		{"store's own cancellation", nil, always(fmt.Errorf("get object: %w", context.Canceled)), 500},
		{"classified storage error", nil, always(promql.ErrStorage{Err: errors.New("x")}), 500},
		{"classified timeout", nil, always(promql.ErrQueryTimeout("x")), 503},
		{"classified cancellation", nil, always(promql.ErrQueryCanceled("x")), 499},
		{"client gone", cancelled, waiting, 499},
		{"deadline passed", expired, waiting, 503},
	} {
		h := newHandler(t, testSettings(), failing{tsdbBackend: withoutStorage(t), fail: tc.fail})
		for name, request := range readers {
			t.Run(tc.name+"/"+name, func(t *testing.T) {
				req := request(t)
				if tc.ctx != nil {
					req = req.WithContext(tc.ctx)
				}
				rec := httptest.NewRecorder()
				h.ServeHTTP(rec, req)
				require.Equal(t, tc.code, rec.Code, rec.Body.String())
			})
		}
	}
}

func TestQuerierErrors(t *testing.T) {
	h := newHandler(t, testSettings(), failing{tsdbBackend: withoutStorage(t), fail: always(errors.New("list segments: denied")), open: true})
	for name, request := range readers {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, request(t))
		require.Equal(t, http.StatusInternalServerError, rec.Code, name)
		require.Contains(t, rec.Body.String(), "list segments: denied", name)
	}
}

func TestErrorBodies(t *testing.T) {
	for _, tc := range []struct {
		fail func(context.Context) error
		path string
		body string
	}{
		{always(tooMuch{}), "/api/v1/query?query=up", `{"status":"error","errorType":"execution","error":"expanding series: query loads more than 5 samples (--query.max-samples=5)"}`},
		{always(tooMuch{}), "/api/v1/metadata", `{"status":"error","errorType":"execution","error":"query loads more than 5 samples (--query.max-samples=5)"}`},
		{always(errors.New("denied")), "/api/v1/query?query=up", `{"status":"error","errorType":"internal","error":"expanding series: denied"}`},
		{always(errors.New("denied")), "/api/v1/status/tsdb", `{"status":"error","errorType":"internal","error":"denied"}`},
		{waiting, "/api/v1/query?query=up&timeout=1ms", `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`},
	} {
		// In a bubble, time advances only while the query waits, whatever the load of the machine.
		synctest.Test(t, func(t *testing.T) {
			h := newHandler(t, testSettings(), failing{tsdbBackend: withoutStorage(t), fail: tc.fail})
			require.JSONEq(t, tc.body, get(t, h, tc.path).Body.String())
		})
	}
}

var _ respond.LimitError = tooMuch{}
