package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/request"
)

// Estimate returns the times of a query in place of its cost.
func (explaining) Estimate(ctx context.Context, q request.Question) (request.Estimate, error) {
	switch q.Text {
	case "bad":
		return request.Estimate{}, badQuery{errors.New("no such thing")}
	case "slow":
		<-ctx.Done()
		return request.Estimate{}, ctx.Err()
	}
	return request.Estimate{
		SeriesTouched: q.Start.Unix(), SamplesRead: q.End.Unix(), Bytes: int64(q.Step.Seconds()), Requests: int64(q.Lookback.Seconds()),
		FunctionMilliseconds: 1.5, Dollars: 1e-7,
	}, nil
}

func TestEstimates(t *testing.T) {
	set := testSettings()
	set.QueryTimeout, set.Cost = time.Minute, request.CostLimits{Series: 10, Dollars: 0.5}
	h := newHandler(t, set, explaining{withoutStorage(t)})
	const times = "start=3&end=60&step=15&query=up"
	for _, c := range []struct {
		path string
		code int
		want string
	}{
		{"/query_cost?query=up&time=12&lookback_delta=1m&start=noon", 200, `{"status":"success","data":{"estimate":{"seriesTouched":12,"samplesRead":12,"bytes":0,"requests":60,"functionMilliseconds":1.5,"dollars":1e-7}}}`},
		{"/query_range_cost?" + times + "&limit=5&stats=all&cost=true&max_series=10&max_samples_read=7&timeout=5&max_query_duration=1m", 200,
			`{"status":"success","data":{"estimate":{"seriesTouched":3,"samplesRead":60,"bytes":15,"requests":0,"functionMilliseconds":1.5,"dollars":1e-7}}}`},
		{"/query_cost", 400, `{"status":"error","errorType":"bad_data","error":"parameter \"query\" is missing"}`},
		{"/query_cost?query=bad", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": no such thing"}`},
		{"/query_cost?query=up&limit=-1", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"limit\": limit must be a non-negative number"}`},
		{"/query_cost?query=up&cost=perhaps", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"cost\": must be a boolean"}`},
		{"/query_cost?query=up&timeout=soon", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"timeout\": cannot parse \"soon\" to a valid duration"}`},
		{"/query_range_cost?query=up", 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"step\": cannot parse \"\" to a valid duration"}`},
		{"/query_cost?query=slow&max_query_duration=1ms", 503, `{"status":"error","errorType":"timeout","error":"query timed out in storage access: context deadline exceeded"}`},
	} {
		for _, prefix := range []string{"/api/v1", "/prometheus/api/v1"} {
			rec := get(t, h, prefix+c.path)
			require.JSONEq(t, c.want, rec.Body.String(), c.path)
			require.Equal(t, c.code, rec.Code, c.path)
		}
	}
	req := httptest.NewRequest(http.MethodPost, "/api/v1/query_range_cost", strings.NewReader(times))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	require.Equal(t, 200, rec.Code)
	require.Contains(t, rec.Body.String(), `"samplesRead":60`)
	require.Equal(t, http.StatusNotFound, get(t, newHandler(t, testSettings(), withoutStorage(t)), "/api/v1/query_cost?query=up").Code)
}

// TestBadCostLimits: queries and estimates refuse the same parameters.
func TestBadCostLimits(t *testing.T) {
	set := testSettings()
	set.QueryTimeout, set.Cost = time.Minute, request.CostLimits{Series: 10, Dollars: 0.5}
	h := newHandler(t, set, explaining{newEmptyBackend(t)})
	for _, c := range []struct{ name, value, want string }{
		{"max_series", "-1", `error parsing max_series: strconv.ParseUint: parsing \"-1\": invalid syntax`},
		{"max_series", "11", `requested max_series of 11 exceeds the server limit of 10`},
		{"max_samples_read", "many", `error parsing max_samples_read: strconv.ParseUint: parsing \"many\": invalid syntax`},
		{"max_dollars", "NaN", `error parsing max_dollars: want a number of at least 0, got NaN`},
		{"max_dollars", "0.75", `requested max_dollars of 0.75 exceeds the server limit of 0.5`},
		{"max_query_duration", "61", `requested max_query_duration of 1m1s exceeds the server limit of 1m0s`},
		{"max_query_duration", "later", `error parsing max_query_duration: cannot parse \"later\" to a valid duration`},
	} {
		for _, path := range []string{"/query?query=up", "/query_cost?query=up", "/query_range?query=up&start=0&end=9&step=3", "/query_range_cost?query=up&start=0&end=9&step=3"} {
			rec := get(t, h, "/api/v1"+path+"&"+url.Values{c.name: {c.value}}.Encode())
			require.Equal(t, http.StatusBadRequest, rec.Code, path)
			require.JSONEq(t, `{"status":"error","errorType":"bad_data","error":"`+c.want+`"}`, rec.Body.String())
		}
	}
	require.Equal(t, 200, get(t, h, "/api/v1/query?query=up&max_series=10&max_samples_read=1&max_dollars=0&max_query_duration=60&cost=false").Code)
}
