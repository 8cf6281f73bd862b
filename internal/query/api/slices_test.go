package api_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/request"
)

// Slices returns the received question in place of its slices.
func (explaining) Slices(ctx context.Context, q request.Question, n int) (any, error) {
	if q.Statement != nil {
		return map[string]any{"sql": q.Statement.Text, "params": q.Statement.Params, "slices": n}, nil
	}
	if q.Text == "bad" {
		return nil, badQuery{errors.New("no such thing")}
	}
	return map[string]any{"start": q.Start.Unix(), "end": q.End.Unix(), "step": q.Step.String(), "slices": n, "asOf": request.From(ctx).AsOf.Unix()}, nil
}

func TestSlices(t *testing.T) {
	h := newHandler(t, testSettings(), explaining{withoutStorage(t)})
	for form, want := range map[string]string{
		"query=up&start=1&end=5&step=2&slices=3&as_of=7": `{"status":"success","data":{"asOf":7,"end":5,"slices":3,"start":1,"step":"2s"}}`,
		"query=up&start=1&end=5":                         `{"status":"success","data":{"asOf":-62135596800,"end":5,"slices":10000,"start":1,"step":"0s"}}`,
		"sql=FROM+x&params=[1]":                          `{"status":"success","data":{"params":[1],"slices":10000,"sql":"FROM x"}}`,
		"start=1&end=5":                                  `{"status":"error","errorType":"bad_data","error":"parameter \"query\" is missing"}`,
		"query=up":                                       `{"status":"error","errorType":"bad_data","error":"parameter \"start\" is missing"}`,
		"query=bad&start=1&end=5":                        `{"status":"error","errorType":"bad_data","error":"invalid parameter \"query\": no such thing"}`,
		"query=up&start=1&end=5&slices=0":                `{"status":"error","errorType":"bad_data","error":"invalid parameter \"slices\": want a number from 1 to 10000, got \"0\""}`,
		"query=up&start=1&end=5&step=0":                  `{"status":"error","errorType":"bad_data","error":"invalid parameter \"step\": zero or negative query resolution step widths are not accepted. Try a positive integer"}`,
	} {
		require.Equal(t, want, get(t, h, "/api/v1/slices?"+form).Body.String(), form)
	}
	require.Contains(t, get(t, h, "/api/v1/slices?sql="+strings.Repeat("x", 1<<18+1)).Body.String(), "limit of 262144 bytes")
}
