package emulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
)

// invoker answers events without a process.
type invoker func(ctx context.Context, payload []byte) ([]byte, error)

func (f invoker) Invoke(ctx context.Context, payload []byte) ([]byte, error) { return f(ctx, payload) }

func named(name string) invoker {
	return func(context.Context, []byte) ([]byte, error) { return json.Marshal(name) }
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestRoutes(t *testing.T) {
	g := &emulator.Gateway{Routes: map[string]emulator.Invoker{}}
	for _, key := range []string{"POST /api/v1/write", "ANY /api/v1/write", "ANY /api/{version}/write", "GET /api/{proxy+}", "ANY /api/v1/{proxy+}"} {
		g.Routes[key] = named(key)
	}
	for _, tc := range []struct{ method, path, want string }{
		{"POST", "/api/v1/write", "POST /api/v1/write"},
		{"GET", "/api/v1/write", "ANY /api/v1/write"},
		{"GET", "/api/v2/write", "ANY /api/{version}/write"},
		{"GET", "/api/v2/a/b", "GET /api/{proxy+}"},
		{"GET", "/api/v1/a/b", "ANY /api/v1/{proxy+}"},
		{"POST", "/api/v2/a", ""},
		{"GET", "/api/", ""},
		{"GET", "/", ""},
	} {
		w := serve(g, httptest.NewRequest(tc.method, tc.path, nil))
		if tc.want == "" {
			require.Equal(t, 404, w.Code, tc)
			require.JSONEq(t, `{"message":"Not Found"}`, w.Body.String())
			continue
		}
		require.JSONEq(t, `"`+tc.want+`"`, w.Body.String(), tc)
	}
	g.Routes["$default"] = named("default")
	require.JSONEq(t, `"default"`, serve(g, httptest.NewRequest("POST", "/x", nil)).Body.String())
	g.Stage = "prod"
	require.JSONEq(t, `"POST /api/v1/write"`, serve(g, httptest.NewRequest("POST", "/prod/api/v1/write", nil)).Body.String())
	require.Equal(t, 404, serve(g, httptest.NewRequest("POST", "/api/v1/write", nil)).Code)
}

func TestEventsHaveLambdasShape(t *testing.T) {
	var got events.APIGatewayV2HTTPRequest
	var raw map[string]any
	keep := invoker(func(_ context.Context, payload []byte) ([]byte, error) {
		raw, got = nil, events.APIGatewayV2HTTPRequest{}
		return []byte(`{"statusCode":204}`), errors.Join(json.Unmarshal(payload, &raw), json.Unmarshal(payload, &got))
	})
	g := &emulator.Gateway{Routes: map[string]emulator.Invoker{"$default": keep}}
	r := httptest.NewRequest("POST", "/a%2Fb?x=1&x=2&y=%20", strings.NewReader("\xff"))
	r.Header.Add("X-Two", "1")
	r.Header.Add("X-Two", "2")
	r.Header.Set("Cookie", "a=1; b=2")
	require.Equal(t, 204, serve(g, r).Code)
	require.Equal(t, "/a/b", got.RawPath, "an HTTP API undoes the escapes of the path")
	require.Equal(t, "x=1&x=2&y=%20", got.RawQueryString)
	require.Equal(t, map[string]string{"x": "1,2", "y": " "}, got.QueryStringParameters)
	require.Equal(t, "1,2", got.Headers["x-two"])
	require.Equal(t, []string{"a=1", "b=2"}, got.Cookies)
	require.Equal(t, "/w==", got.Body)
	require.True(t, got.IsBase64Encoded)
	require.Equal(t, "192.0.2.1", got.RequestContext.HTTP.SourceIP)

	// The members are those of a recorded event.
	b, err := os.ReadFile("../../../internal/aws/lambda/testdata/http-api-query-range-form.json")
	require.NoError(t, err)
	var want map[string]any
	require.NoError(t, json.Unmarshal(b, &want))
	delete(raw, "cookies")
	delete(raw, "queryStringParameters")
	require.Equal(t, keys(want), keys(raw))
	require.Equal(t, keys(want["requestContext"].(map[string]any)), keys(raw["requestContext"].(map[string]any)))

	text := httptest.NewRequest("POST", "/", strings.NewReader(`{"a":"ä"}`))
	text.Header.Set("Content-Type", "application/json; charset=utf-8")
	serve(g, text)
	require.Equal(t, `{"a":"ä"}`, got.Body)
	require.False(t, got.IsBase64Encoded)
}

func keys(m map[string]any) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

func TestGatewaysLimits(t *testing.T) {
	block := invoker(func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	fail := invoker(func(context.Context, []byte) ([]byte, error) { return nil, &emulator.FunctionError{Type: "x"} })
	large := invoker(func(context.Context, []byte) ([]byte, error) { return nil, emulator.ErrRequestTooLarge })
	g := &emulator.Gateway{Timeout: time.Millisecond, Routes: map[string]emulator.Invoker{"ANY /block": block, "ANY /fail": fail, "ANY /large": large}}
	for _, tc := range []struct {
		path string
		body int
		want int
	}{
		{"/block", 0, 503}, {"/fail", 0, 500}, {"/large", 0, 413}, {"/fail", emulator.MaxGatewayBody, 500}, {"/fail", emulator.MaxGatewayBody + 1, 413},
	} {
		w := serve(g, httptest.NewRequest("POST", tc.path, strings.NewReader(strings.Repeat("x", tc.body))))
		require.Equal(t, tc.want, w.Code, tc)
		require.Contains(t, w.Body.String(), `{"message":"`)
	}
}

func TestAnswersOfFunctions(t *testing.T) {
	for answer, want := range map[string]struct {
		code int
		body string
	}{
		`{"statusCode":201,"headers":{"A":"b"},"cookies":["c=1","d=2"],"body":"x"}`: {201, "x"},
		`{"statusCode":200,"body":"eA==","isBase64Encoded":true}`:                   {200, "x"},
		`{"statusCode":200,"body":"*","isBase64Encoded":true}`:                      {500, `{"message":"Internal Server Error"}` + "\n"},
		`{"no":"status"}`: {200, `{"no":"status"}`},
		`"text"`:          {200, `"text"`},
	} {
		to := invoker(func(context.Context, []byte) ([]byte, error) { return []byte(answer), nil })
		w := serve(&emulator.Gateway{Routes: map[string]emulator.Invoker{"$default": to}}, httptest.NewRequest("GET", "/", nil))
		require.Equal(t, want.code, w.Code, answer)
		require.Equal(t, want.body, w.Body.String())
		if want.code == 201 {
			require.Equal(t, []string{"c=1", "d=2"}, w.Header().Values("Set-Cookie"))
			require.Equal(t, "b", w.Header().Get("A"))
		}
	}
}

// streamer answers with a stream, without a process.
type streamer struct {
	invoker
	stream *emulator.Stream
	event  *events.LambdaFunctionURLRequest
}

func (s streamer) InvokeStream(_ context.Context, payload []byte) (*emulator.Stream, error) {
	return s.stream, json.Unmarshal(payload, s.event)
}

func TestFunctionURL(t *testing.T) {
	broken := io.MultiReader(strings.NewReader("a"), &failing{})
	for _, tc := range []struct {
		name   string
		stream *emulator.Stream
		code   int
		broken bool
	}{
		{"http", &emulator.Stream{Prelude: &emulator.Prelude{StatusCode: 203}, Body: io.NopCloser(strings.NewReader("a"))}, 203, false},
		{"bytes", &emulator.Stream{Body: io.NopCloser(strings.NewReader("a"))}, 200, false},
		{"broken", &emulator.Stream{Prelude: &emulator.Prelude{StatusCode: 200}, Body: io.NopCloser(broken)}, 200, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var e events.LambdaFunctionURLRequest
			u := &emulator.URL{Function: streamer{named("whole"), tc.stream, &e}, Stream: true}
			w := httptest.NewRecorder()
			serve := func() { u.ServeHTTP(w, httptest.NewRequest("GET", "/a%2Fb?q=1", nil)) }
			if tc.broken {
				require.PanicsWithValue(t, http.ErrAbortHandler, serve)
			} else {
				serve()
			}
			require.Equal(t, tc.code, w.Code)
			require.Equal(t, "a", w.Body.String())
			require.Equal(t, "/a%2Fb", e.RawPath, "a Function URL leaves the path as it is")
			require.Contains(t, e.RequestContext.DomainName, ".lambda-url.")
			u.Stream = false
			w = httptest.NewRecorder()
			u.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			require.JSONEq(t, `"whole"`, w.Body.String())
		})
	}
}

type failing struct{}

func (*failing) Read([]byte) (int, error) {
	return 0, &emulator.FunctionError{Type: "late", Message: "no luck"}
}
