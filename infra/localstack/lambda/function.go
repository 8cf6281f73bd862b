package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/tests/support/emulator"
)

// function runs one function in one environment. The bootstrap inherits all variables of this
// process and writes to its standard error. The fields are flags.
type function struct {
	Bootstrap string        `arg:"" help:"The function's program."`
	Name      string        `name:"function-name" required:"" help:"Name of the function."`
	Timeout   time.Duration `name:"function-timeout" help:"Maximal duration of an invocation."`
	Grace     time.Duration `name:"function-grace" help:"Time from SIGTERM to SIGKILL at the end. AWS gives 500ms."`
	PIDs      string        `name:"pid-folder" required:"" help:"Folder with a file PID.pid for each living process of the function."`
}

func newFunction() function {
	return function{Timeout: 30 * time.Second, Grace: 2 * time.Second}
}

// Run serves until ctx ends, then ends the bootstrap.
func (f *function) Run(ctx context.Context, out flags.Streams) error {
	lambda := emulator.New(emulator.Settings{
		Path: f.Bootstrap, Env: os.Environ(), Name: f.Name, Timeout: f.Timeout, Grace: f.Grace, Log: out.Err, PIDs: f.PIDs,
	})
	served := serve(ctx, out, "127.0.0.1:0", invocations(lambda))
	return errors.Join(served, lambda.Stop())
}

// headerError marks the answer to an invocation that failed ("Invoke" in Lambda's API reference).
const headerError = "X-Amz-Function-Error"

// invocations serves Lambda's Invoke operation for one function.
func invocations(f *emulator.Function) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /2015-03-31/functions/{name}/invocations", func(w http.ResponseWriter, r *http.Request) {
		payload, err := io.ReadAll(io.LimitReader(r.Body, emulator.MaxPayload+1))
		if err != nil {
			return // the caller has gone
		}
		answer, err := whole(r.Context(), f, payload)
		var fe *emulator.FunctionError
		switch {
		case err == nil:
			_, _ = w.Write(answer) // the caller may have gone
			return
		case errors.Is(err, emulator.ErrRequestTooLarge):
			fe = &emulator.FunctionError{Type: "RequestTooLargeException", Message: err.Error()}
		case !errors.As(err, &fe):
			fe = &emulator.FunctionError{Type: emulator.ErrorExit, Message: err.Error()}
		}
		w.Header().Set(headerError, "Unhandled")
		_ = json.NewEncoder(w).Encode(fe)
	})
	return mux
}

// whole returns an answer in one piece. A streamed HTTP answer becomes the JSON object that a
// function returns without streaming, because that is the only form that LocalStack accepts.
func whole(ctx context.Context, f *emulator.Function, payload []byte) ([]byte, error) {
	s, err := f.InvokeStream(ctx, payload)
	if err != nil {
		return nil, err
	}
	defer s.Body.Close()
	body, err := io.ReadAll(s.Body)
	if err != nil {
		return nil, fmt.Errorf("read stream: %w", err)
	}
	if s.Prelude == nil {
		return body, nil
	}
	return json.Marshal(struct {
		*emulator.Prelude
		Body   string `json:"body"`
		Base64 bool   `json:"isBase64Encoded"`
	}{s.Prelude, base64.StdEncoding.EncodeToString(body), true})
}
