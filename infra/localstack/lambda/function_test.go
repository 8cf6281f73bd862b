package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/tests/support/emulator"
)

// envBootstrap makes the test binary a bootstrap.
const envBootstrap = "PROMLAKE_TEST_BOOTSTRAP"

func TestMain(m *testing.M) {
	if os.Getenv(envBootstrap) != "" {
		awslambda.StartWithOptions(handle, awslambda.WithEnableSIGTERM(func() { os.Exit(0) }))
	}
	os.Exit(m.Run())
}

// handle answers with its event, unless the event names another action.
func handle(_ context.Context, event string) (any, error) {
	switch event {
	case "stream":
		return &events.LambdaFunctionURLStreamingResponse{
			StatusCode: 201, Headers: map[string]string{"X-Kind": "stream"}, Body: strings.NewReader("\x00\xff"),
		}, nil
	case "exit":
		os.Exit(3)
	}
	return event, nil
}

// TestFunction covers each form of an answer of the Invoke operation.
func TestFunction(t *testing.T) {
	path, err := os.Executable()
	require.NoError(t, err)
	t.Setenv(envBootstrap, "1")
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector waits a second before it lets a process end
	f := newFunction()
	f.Bootstrap, f.Name, f.PIDs, f.Timeout, f.Grace = path, "promlake-dev-query", t.TempDir(), 5*time.Minute, 5*time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx, flags.Streams{Out: w, Err: io.Discard}) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))

	invoke := func(event string) (string, string) {
		t.Helper()
		payload, err := json.Marshal(event)
		require.NoError(t, err)
		resp, err := http.Post(url+"/2015-03-31/functions/promlake-dev-query/invocations", "application/json", strings.NewReader(string(payload)))
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		return resp.Header.Get(headerError), string(body)
	}
	failed, body := invoke("x")
	require.Empty(t, failed)
	require.JSONEq(t, `"x"`, body)
	failed, body = invoke("stream")
	require.Empty(t, failed)
	require.JSONEq(t, `{"statusCode":201,"headers":{"X-Kind":"stream"},"body":"AP8=","isBase64Encoded":true}`, body)
	failed, body = invoke("exit")
	require.Equal(t, "Unhandled", failed)
	require.Contains(t, body, `{"errorType":"Runtime.ExitError","errorMessage":"Runtime exited: exit status 3"}`)
	failed, body = invoke(strings.Repeat("x", emulator.MaxPayload))
	require.Equal(t, "Unhandled", failed)
	require.Contains(t, body, "RequestTooLargeException")
	failed, _ = invoke("x")
	require.Empty(t, failed, "a cold start follows the end of a process")
	cancel()
	require.NoError(t, <-done, "SIGTERM ends the process in time")
}
