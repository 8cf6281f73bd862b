package api_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/query/usage"
)

// asker is a weigher whose queries were counted.
type asker struct {
	weigher
	counter *usage.Counter
}

func (a asker) Usage(context.Context) usage.Report { return a.counter.Of("t") }

var _ api.Asker = asker{}

func TestMetricNamesStats(t *testing.T) {
	text := new(string)
	at := time.Unix(1_700_000_000, 0)
	c := usage.New(4096, nil, func() time.Time { return at })
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(`b + on() b{job="x"}`)
	require.NoError(t, err)
	c.Query("t", expr)
	h := newHandler(t, testSettings(), asker{weigher{withoutStorage(t), text, nil}, c})

	const (
		head = `{"status":"success","statsCollectedSince":1700000000,"statsCollectedRecordsTotal":2,"trackerMemoryMaxSizeBytes":4096,"trackerCurrentMemoryUsageBytes":322,"records":[`
		a    = `{"metricName":"a","queryRequestsCount":0,"lastRequestTimestamp":0,"series":2,"samples":30,"bytes":1075838976,"dollarsPerMonth":0.023044921875}`
		b    = `{"metricName":"b","queryRequestsCount":1,"lastRequestTimestamp":1700000000,"series":1,"samples":30,"bytes":1,"dollarsPerMonth":3.213062882423401e-11}`
		tail = `],"complete":true}`
	)
	for query, want := range map[string]string{
		"":                     a + "," + b,
		"limit=1":              a,
		"le=0":                 a,
		"le=1":                 a + "," + b,
		"match_pattern=^b":     b,
		"le=0&match_pattern=b": "",
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
	} {
		name, value, _ := strings.Cut(query, "=")
		rec := get(t, h, "/api/v1/status/metric_names_stats?"+name+"="+url.QueryEscape(value))
		require.Equal(t, http.StatusBadRequest, rec.Code, query)
		require.Contains(t, rec.Body.String(), want)
	}
	plain, _ := weigherHandler(t)
	require.Equal(t, http.StatusNotFound, get(t, plain, "/api/v1/status/metric_names_stats").Code)
}
