package lambdatest

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/promlake/promlake/tests/support/emulator"
)

// Invoke answers an event.
type Invoke func(ctx context.Context, event []byte) ([]byte, error)

// StartAPI serves Lambda's operation Invoke for functions of any name, and points the AWS
// environment of the test at it, whose variables it returns. An *emulator.FunctionError is an error
// of the function; any other error is the refusal of one invocation too many.
func StartAPI(t *testing.T, invoke Invoke) (env []string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", func(w http.ResponseWriter, r *http.Request) {
		event, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller has gone
		}
		out, err := invoke(r.Context(), event)
		if failed := new(emulator.FunctionError); errors.As(err, &failed) {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			out, _ = json.Marshal(failed)
		} else if err != nil {
			w.Header().Set("X-Amzn-ErrorType", "TooManyRequestsException")
			w.WriteHeader(http.StatusTooManyRequests)
			out = []byte(`{"Reason":"ConcurrentInvocationLimitExceeded"}`)
		}
		_, _ = w.Write(out) // the caller may have gone
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	for _, v := range [][2]string{
		{"AWS_ENDPOINT_URL_LAMBDA", srv.URL}, {"AWS_REGION", "us-east-1"}, {"AWS_ACCESS_KEY_ID", "AKIDTEST"}, {"AWS_SECRET_ACCESS_KEY", "hush"},
		{"AWS_CONFIG_FILE", os.DevNull}, {"AWS_SHARED_CREDENTIALS_FILE", os.DevNull},
	} {
		t.Setenv(v[0], v[1])
		env = append(env, v[0]+"="+v[1])
	}
	return env
}

// Handler returns the invocations of a function with a handler of HTTP requests, whose answers have
// at most most bytes.
func Handler(h http.Handler, most int) Invoke {
	return func(ctx context.Context, event []byte) ([]byte, error) {
		var e events.APIGatewayV2HTTPRequest
		if err := json.Unmarshal(event, &e); err != nil {
			return nil, &emulator.FunctionError{Type: "event", Message: err.Error()}
		}
		body, err := base64.StdEncoding.DecodeString(e.Body)
		if err != nil || !e.IsBase64Encoded {
			return nil, &emulator.FunctionError{Type: "event", Message: fmt.Sprint("want a body in base64: ", err)}
		}
		r := httptest.NewRequestWithContext(ctx, e.RequestContext.HTTP.Method, e.RawPath, bytes.NewReader(body))
		for name, v := range e.Headers {
			r.Header.Set(name, v)
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		a := events.APIGatewayV2HTTPResponse{StatusCode: rec.Code, Headers: map[string]string{}, IsBase64Encoded: true}
		for name := range rec.Header() {
			a.Headers[name] = rec.Header().Get(name)
		}
		if rec.Body.Len() > most {
			a.StatusCode = http.StatusRequestEntityTooLarge
			rec.Body.Reset()
		}
		a.Body = base64.StdEncoding.EncodeToString(rec.Body.Bytes())
		return json.Marshal(a)
	}
}
