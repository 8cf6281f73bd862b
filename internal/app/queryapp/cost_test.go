package queryapp_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/query/request"
)

// TestCostOfQueries: estimates, comparisons and refusals reach clients as in Prometheus 3.16.
func TestCostOfQueries(t *testing.T) {
	s := settings.Default[queryapp.Settings]()
	s.Query.Cost = request.CostLimits{Samples: 500}
	base := serve(t, s)
	write(t, base, "x", "a", "b", "c")
	var estimate struct {
		Data struct{ Estimate request.Estimate }
	}
	code, body := get(t, base+"/api/v1/query_cost?query=x")
	require.Equal(t, http.StatusOK, code, body)
	require.NoError(t, json.Unmarshal([]byte(body), &estimate))
	require.Equal(t, int64(3), estimate.Data.Estimate.SeriesTouched)
	require.Equal(t, int64(3), estimate.Data.Estimate.SamplesRead)

	for _, more := range []string{"", "&stats=all"} {
		for _, text := range []string{"x", "sum(x)", `count_values("v", x)`, "x offset 1s or x"} {
			code, body = get(t, base+"/api/v1/query?cost=true"+more+"&query="+url.QueryEscape(text))
			require.Equal(t, http.StatusOK, code, body)
			var answer struct {
				Data struct {
					Result json.RawMessage
					Stats  json.RawMessage
					Cost   *request.Comparison
				}
			}
			require.NoError(t, json.Unmarshal([]byte(body), &answer))
			require.NotNil(t, answer.Data.Cost, body)
			require.Positive(t, answer.Data.Cost.Actual.SamplesRead, body)
			require.LessOrEqual(t, answer.Data.Cost.Actual.SamplesRead, answer.Data.Cost.Estimated.SamplesRead, body)
			require.LessOrEqual(t, answer.Data.Cost.Actual.SeriesTouched, answer.Data.Cost.Estimated.SeriesTouched, body)
			require.Equal(t, more != "", len(answer.Data.Stats) > 0)
		}
	}
	_, body = get(t, base+"/api/v1/query?query=x")
	require.NotContains(t, body, `"cost"`)

	for _, path := range []string{"/api/v1/query?query=x&max_series=2", "/prometheus/api/v1/query_range?query=x&start=1&end=2000000000&step=1000000&max_series=2&stats=all", "/api/v1/query?query=x&max_series=2&stats=old"} {
		code, body = get(t, base+path)
		require.Equal(t, http.StatusUnprocessableEntity, code, body)
		var answer struct{ Status, ErrorType, Error string }
		require.NoError(t, json.Unmarshal([]byte(body), &answer), "one answer: %s", body)
		require.Equal(t, "cost_limit", answer.ErrorType)
		require.Contains(t, answer.Error, "query would load too many series into memory in query execution")
	}
	code, body = get(t, base+"/api/v1/query?query=x&max_samples_read=501")
	require.Equal(t, http.StatusBadRequest, code, body)
	code, body = get(t, base+"/api/v1/sql?query="+url.QueryEscape("FROM promql('x', now(), now() + INTERVAL 1 HOUR, INTERVAL 1 SECOND)"))
	require.Equal(t, http.StatusUnprocessableEntity, code, body)
	require.Contains(t, body, `"cost_limit"`, "flags hold inside of SQL")
}
