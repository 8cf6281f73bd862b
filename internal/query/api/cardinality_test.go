package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api/weights"
)

// weigher is a backend with three series. It records what it was asked.
type weigher struct {
	*tsdbBackend
	asked *string
	err   error
}

const recentEnd = 1_700_000_000_000

func (w weigher) Recent() (mint, maxt int64) { return recentEnd - 3_600_000, recentEnd }

func (w weigher) Weigh(_ context.Context, sets [][]*labels.Matcher, mint, maxt int64, visit func(labels.Labels, int64, float64, int64)) error {
	var texts []string
	for _, ms := range sets {
		text := ""
		for _, m := range ms {
			text += m.String() + ","
		}
		texts = append(texts, text)
	}
	*w.asked = strings.Join(texts, " or ") + " " + time.UnixMilli(mint).UTC().Format("2006-01-02T15:04:05.000") + "/" + time.UnixMilli(maxt).UTC().Format("2006-01-02T15:04:05.000")
	const mib = 1 << 20
	visit(labels.FromStrings("__name__", "a", "job", "x"), 10, 1024*mib, recentEnd-60_000)
	visit(labels.FromStrings("__name__", "a", "job", "yy"), 20, 2*mib, recentEnd)
	visit(labels.FromStrings("__name__", "b"), 30, 1.5, recentEnd-1)
	return w.err
}

var _ weights.Weigher = weigher{}

func weigherHandler(t *testing.T) (h http.Handler, asked *string) {
	asked = new(string)
	return newHandler(t, testSettings(), weigher{withoutStorage(t), asked, nil}), asked
}

// TestExplore: any parameter that Prometheus does not have leads to the extended status.
func TestExplore(t *testing.T) {
	h, asked := weigherHandler(t)
	const (
		a  = `"samples":30,"bytes":1075838976,"dollarsPerMonth":0.023044921875}`
		b  = `"samples":30,"bytes":1,"dollarsPerMonth":3.213062882423401e-11}`
		x  = `"samples":10,"bytes":1073741824,"dollarsPerMonth":0.023}`
		yy = `"samples":20,"bytes":2097152,"dollarsPerMonth":0.000044921875}`
	)
	rec := get(t, h, "/api/v1/status/tsdb?topN=2&focusLabel=job")
	require.Equal(t, http.StatusOK, rec.Code, rec.Body)
	body := rec.Body.String()
	require.Equal(t, " 2023-11-14T21:13:20.000/2023-11-14T22:13:20.000", *asked)
	for _, want := range []string{
		`{"status":"success","data":{"headStats":{"numSeries":3,"numLabelPairs":4,"chunkCount":0,"minTime":1699996400000,"maxTime":1700000000000},"totalSeries":3,"totalLabelValuePairs":4,`,
		`"seriesCountByMetricName":[{"name":"a","value":2,` + a + `,{"name":"b","value":1,` + b + `]`,
		`"seriesCountByFocusLabelValue":[{"name":"x","value":1,` + x + `,{"name":"yy","value":1,` + yy + `]`,
		`"seriesCountByLabelName":[{"name":"__name__","value":3,`,
		`"seriesCountByLabelValuePair":[{"name":"__name__=a","value":2,` + a + `,{"name":"__name__=b","value":1,`,
		`"labelValueCountByLabelName":[{"name":"__name__","value":2,`,
		`"memoryInBytesByLabelName":[{"name":"__name__","value":3,`,
	} {
		require.Contains(t, body, want)
	}
	for query, want := range map[string]string{
		"topN=1":                            " 2023-11-14T21:13:20.000/2023-11-14T22:13:20.000",
		"date=2026-02-28":                   " 2026-02-28T00:00:00.000/2026-02-28T23:59:59.999",
		"start=1699999999":                  " 2023-11-14T22:13:19.000/2023-11-14T22:13:20.000",
		"end=7200":                          " 1970-01-01T01:00:00.000/1970-01-01T02:00:00.000",
		"start=1970-01-01T00:00:00Z&end=60": " 1970-01-01T00:00:00.000/1970-01-01T00:01:00.000",
		"match[]=up{job=\"x\"}&match[]={a=~\"b|c\"}": `job="x",__name__="up", or a=~"b|c", 2023-11-14T21:13:20.000/2023-11-14T22:13:20.000`,
	} {
		rec := get(t, h, "/prometheus/api/v1/status/tsdb?"+strings.ReplaceAll(strings.ReplaceAll(query, `"`, "%22"), "|", "%7C"))
		require.Equal(t, http.StatusOK, rec.Code, rec.Body)
		require.Equal(t, want, *asked, query)
		if query == "topN=1" {
			require.Contains(t, rec.Body.String(), `"seriesCountByFocusLabelValue":[]`)
			require.Equal(t, 1, strings.Count(rec.Body.String(), `"name":"a"`))
			require.NotContains(t, rec.Body.String(), `"name":"b"`)
		}
	}
}

func TestMimirCardinality(t *testing.T) {
	h, asked := weigherHandler(t)
	for _, tc := range []struct{ path, body, asked string }{
		{
			"cardinality/label_names?limit=1&count_method=active",
			`{"label_values_count_total":4,"label_names_count":2,"cardinality":[{"label_name":"__name__","label_values_count":2,"samples":60,"bytes":1075838977,"dollars_per_month":0.023044921907130627}]}`,
			" 2023-11-14T21:13:20.000/2023-11-14T22:13:20.000",
		},
		{
			`cardinality/label_values?label_names[]=job&label_names[]=nothing&selector={job!="z"}&date=2026-01-01`,
			`{"series_count_total":3,"labels":[{"label_name":"job","label_values_count":2,"series_count":2,"cardinality":[` +
				`{"label_value":"x","series_count":1,"samples":10,"bytes":1073741824,"dollars_per_month":0.023},` +
				`{"label_value":"yy","series_count":1,"samples":20,"bytes":2097152,"dollars_per_month":0.000044921875}]}]}`,
			`job!="z", 2026-01-01T00:00:00.000/2026-01-01T23:59:59.999`,
		},
		{
			`cardinality/active_series?selector={job!="z"}`,
			`{"data":[{"__name__":"a","job":"x"},{"__name__":"a","job":"yy"},{"__name__":"b"}],"weights":[` +
				`{"samples":10,"bytes":1073741824,"dollars_per_month":0.023},{"samples":20,"bytes":2097152,"dollars_per_month":0.000044921875},{"samples":30,"bytes":1,"dollars_per_month":3.213062882423401e-11}]}`,
			`job!="z", 2023-11-14T21:13:20.000/2023-11-14T22:13:20.000`,
		},
	} {
		for _, prefix := range []string{"/api/v1/", "/prometheus/api/v1/"} {
			path, query, _ := strings.Cut(tc.path, "?")
			values, err := url.ParseQuery(query)
			require.NoError(t, err)
			rec := get(t, h, prefix+path+"?"+values.Encode())
			require.Equal(t, http.StatusOK, rec.Code, rec.Body)
			require.Equal(t, tc.body, rec.Body.String())
			require.Equal(t, "application/json", rec.Header().Get("Content-Type"))
			require.Equal(t, tc.asked, *asked)
			post := httptest.NewRequest(http.MethodPost, prefix+path, strings.NewReader(values.Encode()))
			post.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			rec = httptest.NewRecorder()
			h.ServeHTTP(rec, post)
			require.Equal(t, tc.body, rec.Body.String())
		}
	}
}

func TestCardinalityRefuses(t *testing.T) {
	h, _ := weigherHandler(t)
	for path, want := range map[string]string{
		"status/tsdb?topN=0":                                               `invalid parameter \"topN\": want a number from 1 to 10000, got \"0\"`,
		"status/tsdb?topN=10001":                                           `invalid parameter \"topN\"`,
		"status/tsdb?topN=1&limit=no":                                      `invalid parameter \"limit\"`,
		"status/tsdb?match[]=sum(x)":                                       "parse error",
		"status/tsdb?date=yesterday":                                       `invalid parameter \"date\": want YYYY-MM-DD, got \"yesterday\"`,
		"status/tsdb?date=2026-01-01&end=1":                                "parameter date stands for start and end",
		"status/tsdb?start=x":                                              `invalid parameter \"start\"`,
		"status/tsdb?start=2&end=1":                                        "end timestamp must not be before start time",
		"status/tsdb?topN=1&as_of=x":                                       `invalid parameter \"as_of\"`,
		"cardinality/label_names?limit=501":                                `invalid parameter \"limit\": want a number from 1 to 500`,
		"cardinality/label_names?count_method=guess":                       "want inmemory or active",
		"cardinality/label_names?selector=a&selector=b":                    "want one at most, got 2",
		"cardinality/label_names?selector=" + strings.Repeat("x", 300_000): "--query.max",
		"cardinality/label_values":                                         "'label_names[]' param is required",
		"cardinality/label_values?label_names[]=":                          "invalid 'label_names' param ''",
		"cardinality/active_series":                                        `missing parameter \"selector\"`,
		"cardinality/active_series?selector=1":                             "parse error",
	} {
		rec := get(t, h, "/api/v1/"+path)
		require.Equal(t, http.StatusBadRequest, rec.Code, "%.80s: %s", path, rec.Body)
		require.Contains(t, rec.Body.String(), want, "%.80s", path)
		require.Contains(t, rec.Body.String(), `"status":"error","errorType":"bad_data"`)
	}
	failed := newHandler(t, testSettings(), weigher{withoutStorage(t), new(string), limitErr{}})
	for _, path := range []string{"status/tsdb?topN=1", "cardinality/label_names", "cardinality/label_values?label_names[]=a", "cardinality/active_series?selector=a"} {
		rec := get(t, failed, "/api/v1/"+path)
		require.Equal(t, http.StatusUnprocessableEntity, rec.Code, path)
		require.Contains(t, rec.Body.String(), "beyond the limit")
	}
	without := newHandler(t, testSettings(), withoutStorage(t))
	require.Equal(t, http.StatusNotFound, get(t, without, "/api/v1/cardinality/label_names").Code)
	require.Equal(t, http.StatusBadRequest, get(t, without, "/api/v1/status/tsdb?topN=1").Code)
}

// limitErr is the error of a query beyond a limit.
type limitErr struct{}

func (limitErr) Error() string    { return "beyond the limit" }
func (limitErr) QueryLimit() bool { return true }
