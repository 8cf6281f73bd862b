package api_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/request"
)

// explaining is a Backend that returns the received query as its explanation.
type explaining struct{ *tsdbBackend }

type badQuery struct{ error }

func (badQuery) BadQuery() bool { return true }

func (explaining) Explain(ctx context.Context, q request.Question) (any, error) {
	switch q.Text {
	case "bad":
		return nil, badQuery{errors.New("no such thing")}
	case "broken":
		return nil, errors.New("disk on fire")
	}
	asOf := request.From(ctx).AsOf
	return map[string]any{
		"query": q.Text, "start": q.Start.Unix(), "end": q.End.Unix(), "step": q.Step.String(), "lookback": q.Lookback.String(), "analyze": q.Analyze, "asOf": asOf.Unix(), "brief": q.WithoutStatements,
	}, nil
}

func TestExplain(t *testing.T) {
	h := newHandler(t, testSettings(), explaining{withoutStorage(t)})
	for _, c := range []struct {
		form url.Values
		code int
		want string
	}{
		{url.Values{"query": {"up"}, "time": {"12"}}, 200, `{"status":"success","data":{"analyze":false,"asOf":-62135596800,"brief":false,"end":12,"lookback":"0s","query":"up","start":12,"step":"0s"}}`},
		{url.Values{"query": {"up"}, "start": {"0"}, "end": {"60"}, "step": {"15"}, "analyze": {"true"}, "lookback_delta": {"1m"}, "as_of": {"7"}}, 200,
			`{"status":"success","data":{"analyze":true,"asOf":7,"brief":false,"end":60,"lookback":"1m0s","query":"up","start":0,"step":"15s"}}`},
		{url.Values{"query": {"up"}, "time": {"12"}, "statements": {"false"}}, 200, `{"status":"success","data":{"analyze":false,"asOf":-62135596800,"brief":true,"end":12,"lookback":"0s","query":"up","start":12,"step":"0s"}}`},
		{url.Values{"query": {"up"}, "analyze": {"true"}, "statements": {"0"}}, 400,
			`{"status":"error","errorType":"bad_data","error":"invalid parameter \"statements\": analyze=true needs the statements; leave one of the two out"}`},
		{url.Values{"query": {"up"}, "statements": {"few"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"statements\": strconv.ParseBool: parsing \"few\": invalid syntax"}`},
		{url.Values{}, 400, `{"status":"error","errorType":"bad_data","error":"parameter \"query\" is missing"}`},
		{url.Values{"query": {"bad"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": no such thing"}`},
		{url.Values{"query": {"broken"}}, 500, `{"status":"error","errorType":"internal","error":"disk on fire"}`},
		{url.Values{"query": {"up"}, "time": {"noon"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"time\": cannot parse \"noon\" to a valid timestamp"}`},
		{url.Values{"query": {"up"}, "analyze": {"maybe"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"analyze\": strconv.ParseBool: parsing \"maybe\": invalid syntax"}`},
		{url.Values{"query": {"up"}, "step": {"5"}}, 400, `{"status":"error","errorType":"bad_data","error":"parameter \"start\" is missing"}`},
		{url.Values{"query": {"up"}, "start": {"9"}, "end": {"3"}, "step": {"5"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"end\": end timestamp must not be before start time"}`},
		{url.Values{"query": {"up"}, "start": {"1"}, "end": {"3"}, "step": {"x"}}, 400, `{"status":"error","errorType":"bad_data","error":"invalid parameter \"step\": cannot parse \"x\" to a valid duration"}`},
		{url.Values{"query": {"up"}, "start": {"1"}, "end": {"3"}, "step": {"0"}}, 400,
			`{"status":"error","errorType":"bad_data","error":"invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer"}`},
	} {
		for _, path := range []string{"/api/v1/explain", "/prometheus/api/v1/explain"} {
			rec := get(t, h, path+"?"+c.form.Encode())
			require.Equal(t, c.code, rec.Code, c.form)
			require.JSONEq(t, c.want, rec.Body.String(), c.form)
		}
		req := httptest.NewRequest(http.MethodPost, "/api/v1/explain", strings.NewReader(c.form.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		require.Equal(t, c.code, rec.Code, c.form)
		require.JSONEq(t, c.want, rec.Body.String(), c.form)
	}
}

func TestExplainOfOtherBackends(t *testing.T) {
	rec := get(t, newHandler(t, testSettings(), withoutStorage(t)), "/api/v1/explain?query=up")
	require.Equal(t, http.StatusNotFound, rec.Code)
}
