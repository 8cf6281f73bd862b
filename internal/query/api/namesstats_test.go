package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api/weights"
	"github.com/promlake/promlake/internal/query/usage"
	"github.com/promlake/promlake/tests/support/memstore"
)

// asker is a weigher whose queries were counted.
type asker struct {
	weigher
	counter *usage.Counter
	err     error
}

func (a asker) Usage(ctx context.Context) (usage.Report, error) {
	r, err := a.counter.Of(ctx, "t")
	return r, cmp.Or(a.err, err)
}

func (a asker) AskedForValues(_ context.Context, label string) { a.counter.LabelValues("t", label) }

var _ weights.Asker = asker{}

// statsHead is the begin of the answers, with the number of records and the bytes in memory.
const statsHead = `{"status":"success","statsCollectedSince":1700000000,"statsCollectedRecordsTotal":%d,"trackerMemoryMaxSizeBytes":4096,"trackerCurrentMemoryUsageBytes":%d,"records":[`

func newAsker(t *testing.T, text *string) asker {
	t.Helper()
	at := time.Unix(1_700_000_000, 0)
	c := usage.New(usage.Settings{Bytes: 4096}, memstore.New(memstore.Settings{}), nil, slog.New(slog.DiscardHandler), func() time.Time { return at })
	at = at.Add(time.Hour)
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(`b + on() b{job="x"}`)
	require.NoError(t, err)
	c.Query("t", usage.Wanted(expr))
	return asker{weigher: weigher{withoutStorage(t), text, nil}, counter: c}
}

func TestMetricNamesStats(t *testing.T) {
	text := new(string)
	h := newHandler(t, testSettings(), newAsker(t, text))

	const (
		a    = `{"metricName":"a","queryRequestsCount":0,"lastRequestTimestamp":0,"series":2,"lastSampleTimestamp":1700000000,"samples":30,"bytes":1075838976,"dollarsPerMonth":0.023044921875}`
		b    = `{"metricName":"b","queryRequestsCount":1,"lastRequestTimestamp":1700003600,"series":1,"lastSampleTimestamp":1699999999,"samples":30,"bytes":1,"dollarsPerMonth":3.213062882423401e-11}`
		tail = `]}`
	)
	head := fmt.Sprintf(statsHead, 2, 485)
	for query, want := range map[string]string{
		"":                     a + "," + b,
		"limit=1":              a,
		"le=0":                 a,
		"le=1":                 a + "," + b,
		"match_pattern=^b":     b,
		"le=0&match_pattern=b": "",
		"not_asked_for=1d":     a + "," + b,
	} {
		for _, prefix := range []string{"", "/prometheus"} {
			rec := get(t, h, prefix+"/api/v1/status/metric_names_stats?"+query)
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.Equal(t, head+want+tail, rec.Body.String(), query)
		}
	}
	get(t, h, "/api/v1/status/metric_names_stats?date=2026-01-01&match[]=up")
	require.Equal(t, `__name__="up", 2026-01-01T00:00:00.000/2026-01-01T23:59:59.999`, *text)
	for query, want := range map[string]string{
		"le=-1":           "want a number of queries, 0 or more, got",
		"limit=0":         "want a number from 1 to 1000000",
		"match_pattern=(": "missing closing )",
		"match[]={":       "parse error",
		"start=x":         "start",
		"not_asked_for=x": "want a duration such as 30d, got \\\"x\\\"",
		"not_asked_for=0": "want a duration such as 30d",
	} {
		name, value, _ := strings.Cut(query, "=")
		rec := get(t, h, "/api/v1/status/metric_names_stats?"+name+"="+url.QueryEscape(value))
		require.Equal(t, http.StatusBadRequest, rec.Code, query)
		require.Contains(t, rec.Body.String(), want)
	}
	plain, _ := weigherHandler(t)
	require.Equal(t, http.StatusNotFound, get(t, plain, "/api/v1/status/metric_names_stats").Code)
	require.Equal(t, http.StatusNotFound, get(t, plain, "/api/v1/status/label_names_stats").Code)
}

// TestLabelNamesStats: a request for the values of a label asks for it, too.
func TestLabelNamesStats(t *testing.T) {
	h := newHandler(t, testSettings(), newAsker(t, new(string)))
	for _, name := range []string{"job", "U__job", "a", "__name__"} { // the backend answers none of them
		get(t, h, "/api/v1/label/"+name+"/values")
	}
	const job = `{"labelName":"job","values":2,"queryRequestsCount":3,"lastRequestTimestamp":1700003600,"series":2,"lastSampleTimestamp":1700000000,"samples":30,"bytes":1075838976,"dollarsPerMonth":0.023044921875}`
	for query, want := range map[string]string{"": job, "le=3": job, "le=2": "", "match_pattern=x": ""} {
		rec := get(t, h, "/prometheus/api/v1/status/label_names_stats?"+query)
		require.Equal(t, http.StatusOK, rec.Code, rec.Body)
		require.Equal(t, fmt.Sprintf(statsHead, 1, 646)+want+"]}", rec.Body.String(), query)
	}
}

func TestNotAskedFor(t *testing.T) {
	h := newHandler(t, testSettings(), newAsker(t, new(string)))
	asked := time.Unix(1_700_003_600, 0)
	names := func(idle time.Duration) (names []string) {
		rec := get(t, h, fmt.Sprintf("/api/v1/status/metric_names_stats?not_asked_for=%dms", idle.Milliseconds()))
		require.Equal(t, http.StatusOK, rec.Code, rec.Body)
		var out struct{ Records []struct{ MetricName string } }
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &out))
		for _, x := range out.Records {
			names = append(names, x.MetricName)
		}
		return names
	}
	require.Equal(t, []string{"a"}, names(time.Since(asked)+30*time.Minute))
	require.Equal(t, []string{"a", "b"}, names(time.Since(asked)-30*time.Minute))
	rec := get(t, h, "/api/v1/status/metric_names_stats?not_asked_for=20y")
	require.Equal(t, http.StatusUnprocessableEntity, rec.Code)
	require.JSONEq(t, `{"status":"error","errorType":"execution","error":"queries are counted since 2023-11-14T22:13:20Z: what was not asked for in 20y is known from 2043-11-09T22:13:20Z on"}`, rec.Body.String())
}

func TestUnreadableCounts(t *testing.T) {
	a := newAsker(t, new(string))
	a.err = errors.New("read v1/t/usage/queries.json: damaged")
	rec := get(t, newHandler(t, testSettings(), a), "/api/v1/status/metric_names_stats")
	require.Equal(t, http.StatusInternalServerError, rec.Code)
	require.Contains(t, rec.Body.String(), "usage/queries.json: damaged")
}
