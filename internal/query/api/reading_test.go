package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/request"
)

// notingBackend records the time as of which it is queried, and reports a read. It implements
// api.Backend.
type notingBackend struct {
	*tsdbBackend
	mu   sync.Mutex
	asOf []string
	err  error
}

func (b *notingBackend) note(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := request.From(ctx).AsOf
	if t.IsZero() {
		b.asOf = append(b.asOf, "now")
	} else {
		b.asOf = append(b.asOf, t.UTC().Format(time.RFC3339Nano))
	}
	if st := request.From(ctx).Stats; st != nil {
		st.Add(request.Totals{Blocks: 2, RowGroups: request.Share{Considered: 10, Read: 3}, Bytes: request.Share{Considered: 1000, Read: 300}})
	}
	return b.err
}

func (b *notingBackend) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := b.tsdbBackend.Querier(mint, maxt)
	return notingQuerier{q, b}, err
}

type notingQuerier struct {
	storage.Querier
	b *notingBackend
}

func (q notingQuerier) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, ms ...*labels.Matcher) storage.SeriesSet {
	if err := q.b.note(ctx); err != nil {
		return storage.ErrSeriesSet(err)
	}
	return q.Querier.Select(ctx, sorted, hints, ms...)
}

func (q notingQuerier) LabelNames(ctx context.Context, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	if err := q.b.note(ctx); err != nil {
		return nil, nil, err
	}
	return q.Querier.LabelNames(ctx, hints, ms...)
}

func (q notingQuerier) LabelValues(ctx context.Context, name string, hints *storage.LabelHints, ms ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	if err := q.b.note(ctx); err != nil {
		return nil, nil, err
	}
	return q.Querier.LabelValues(ctx, name, hints, ms...)
}

func TestAsOf(t *testing.T) {
	b := &notingBackend{tsdbBackend: newBackend(t)}
	h := newHandler(t, testSettings(), b)
	paths := []string{
		"/api/v1/query?query=up&time=60", "/api/v1/query_range?query=up&start=0&end=60&step=15", "/api/v1/series?match[]=up",
		"/api/v1/labels", "/api/v1/label/job/values",
	}
	for _, path := range paths {
		sep := "&"
		if !strings.Contains(path, "?") {
			sep = "?"
		}
		for asOf, want := range map[string]string{
			"": "now", sep + "as_of=1700000000.5": "2023-11-14T22:13:20.5Z", sep + "as_of=2023-11-14T23:13:20%2B01:00": "2023-11-14T22:13:20Z",
		} {
			b.asOf = nil
			rec := get(t, h, path+asOf)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.Equal(t, []string{want}, b.asOf, path+asOf)
		}
		rec := get(t, h, path+sep+"as_of=yesterday")
		require.Equal(t, http.StatusBadRequest, rec.Code)
		require.JSONEq(t, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"as_of\": cannot parse \"yesterday\" to a valid timestamp"}`, rec.Body.String())
	}
	t.Run("form", func(t *testing.T) {
		b.asOf = nil
		r := httptest.NewRequest(http.MethodPost, "/api/v1/query", strings.NewReader("query=up&time=60&as_of=1700000000&stats=all"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		require.Equal(t, http.StatusOK, rec.Code, rec.Body)
		require.Equal(t, []string{"2023-11-14T22:13:20Z"}, b.asOf)
		require.Contains(t, rec.Body.String(), `"storage"`)
	})
	t.Run("too old", func(t *testing.T) {
		b.err = tooOld{}
		defer func() { b.err = nil }()
		for _, path := range paths {
			rec := get(t, h, path)
			require.Equal(t, http.StatusUnprocessableEntity, rec.Code, path)
			require.Contains(t, rec.Body.String(), "the oldest is of 2023")
			require.Contains(t, rec.Body.String(), `"errorType":"execution"`)
		}
	})
}

// tooOld is the stage's error for a time whose state can no longer be read.
type tooOld struct{}

func (tooOld) Error() string    { return "the oldest is of 2023" }
func (tooOld) QueryLimit() bool { return true }

func TestStorageStats(t *testing.T) {
	h := newHandler(t, testSettings(), &notingBackend{tsdbBackend: newBackend(t)})
	const storageStats = `"storage":{"segments":0,"blocks":2,"rowGroups":{"considered":10,"read":3},"bytes":{"considered":1000,"read":300}}`
	for _, path := range []string{"/api/v1/query?query=up&time=60", "/api/v1/query_range?query=up&start=0&end=60&step=15"} {
		body := get(t, h, path+"&stats=all").Body.String()
		require.Contains(t, body, storageStats)
		require.Contains(t, body, `"stats":{"timings":{"evalTotalTime":`)
		require.Contains(t, body, `"samples":{`)
		for _, stats := range []string{"", "&stats=true"} {
			require.NotContains(t, get(t, h, path+stats).Body.String(), `"storage"`)
		}
	}
}
