package emulator_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/emulator"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// envBootstrap makes the test binary a bootstrap.
const envBootstrap = "PROMLAKE_TEST_BOOTSTRAP"

func TestMain(m *testing.M) {
	switch os.Getenv(envBootstrap) {
	case "":
		os.Exit(m.Run())
	case "crash":
		fmt.Println("init fails")
		os.Exit(3)
	case "deaf":
		awslambda.Start(handle) // no extension, so no SIGTERM
	default:
		awslambda.StartWithOptions(handle, awslambda.WithEnableSIGTERM(func() { os.Exit(0) }))
	}
}

// handle answers with its event, or does what the event requests.
func handle(ctx context.Context, e string) (string, error) {
	switch e {
	case "pid":
		return fmt.Sprint(os.Getpid()), nil
	case "environment":
		return strings.Join(os.Environ(), "\n"), nil
	case "hang":
		fmt.Println("hanging")
		select {}
	case "error":
		return "", errors.New("no luck")
	case "large":
		return strings.Repeat("x", emulator.MaxPayload), nil
	}
	return e, nil
}

func function(t *testing.T, s emulator.Settings) *emulator.Function {
	t.Helper()
	path, err := os.Executable()
	require.NoError(t, err)
	s.Path = path
	// The race detector waits a second before it lets a process end.
	s.Env = append([]string{envBootstrap + "=1", "GORACE=atexit_sleep_ms=0"}, s.Env...)
	return lambdatest.Start(t, s)
}

func invoke(t *testing.T, f *emulator.Function, e string) (string, error) {
	t.Helper()
	payload, err := json.Marshal(e)
	require.NoError(t, err)
	b, err := f.Invoke(t.Context(), payload)
	if err != nil {
		return "", err
	}
	var v string
	require.NoError(t, json.Unmarshal(b, &v))
	return v, nil
}

func requireFunctionError(t *testing.T, err error, kind string) {
	t.Helper()
	var fe *emulator.FunctionError
	require.ErrorAs(t, err, &fe)
	require.Equal(t, kind, fe.Type, fe)
}

func TestEnvironmentsAreReused(t *testing.T) {
	f := function(t, emulator.Settings{})
	require.Empty(t, f.Processes(), "nothing runs before it is needed")
	first, err := invoke(t, f, "pid")
	require.NoError(t, err)
	again, err := invoke(t, f, "pid")
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Equal(t, fmt.Sprint(f.Processes()[0]), first)

	f.Kill()
	require.Empty(t, f.Processes())
	anew, err := invoke(t, f, "pid")
	require.NoError(t, err)
	require.NotEqual(t, first, anew)
	colds := f.ColdStarts()
	require.Len(t, colds, 2)
	for _, c := range colds {
		require.Positive(t, c.Ready)
		require.Greater(t, c.Answer, c.Ready)
	}
}

func TestEnvironmentIsLambdas(t *testing.T) {
	t.Setenv("LEAK", "1")
	env, err := invoke(t, function(t, emulator.Settings{MemoryMB: 1769, Concurrency: 3, Env: []string{"AWS_REGION=eu-central-1"}}), "environment")
	require.NoError(t, err)
	for _, want := range []string{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=1769\n", "AWS_LAMBDA_MAX_CONCURRENCY=3\n", "AWS_REGION=eu-central-1", "AWS_LAMBDA_FUNCTION_NAME=promlake-test\n"} {
		require.Contains(t, env, want)
	}
	require.NotContains(t, env, "LEAK")
}

func TestErrors(t *testing.T) {
	f := function(t, emulator.Settings{})
	_, err := invoke(t, f, "error")
	requireFunctionError(t, err, "errorString")
	require.ErrorContains(t, err, "no luck")
	require.Len(t, f.Processes(), 1, "an error ends no process")
	_, err = invoke(t, f, "large")
	requireFunctionError(t, err, emulator.ErrorTooLarge)
	_, err = f.Invoke(t.Context(), []byte(`"`+strings.Repeat("x", emulator.MaxPayload)+`"`))
	require.ErrorIs(t, err, emulator.ErrRequestTooLarge)
	_, err = f.Invoke(t.Context(), []byte("no JSON"))
	require.ErrorContains(t, err, "event is not JSON")
	_, err = lambdatest.Start(t, emulator.Settings{Path: "/does/not/exist"}).Invoke(t.Context(), []byte("{}"))
	require.ErrorContains(t, err, "start bootstrap: ")
}

func TestCrashAtInit(t *testing.T) {
	f := function(t, emulator.Settings{Env: []string{envBootstrap + "=crash"}})
	for range 2 {
		_, err := invoke(t, f, "x")
		requireFunctionError(t, err, emulator.ErrorExit)
		require.ErrorContains(t, err, "exit status 3")
	}
}

func TestTimeoutKills(t *testing.T) {
	f := function(t, emulator.Settings{Timeout: 300 * time.Millisecond})
	_, err := invoke(t, f, "hang")
	requireFunctionError(t, err, emulator.ErrorTimeout)
	require.ErrorContains(t, err, "Task timed out after 0.30 seconds")
}

// firstLine is a writer that closes a channel at the first output.
type firstLine struct {
	once sync.Once
	seen chan struct{}
}

// Write implements io.Writer.
func (w *firstLine) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.seen) })
	return len(p), nil
}

func TestKillFromOutside(t *testing.T) {
	out, pids := &firstLine{seen: make(chan struct{})}, t.TempDir()
	f := function(t, emulator.Settings{Log: out, PIDs: pids})
	done := make(chan error, 1)
	go func() {
		_, err := f.Invoke(context.Background(), []byte(`"hang"`))
		done <- err
	}()
	<-out.seen
	files, err := filepath.Glob(filepath.Join(pids, "*.pid"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintln(f.Processes()[0]), string(text))
	require.NoError(t, syscall.Kill(f.Processes()[0], syscall.SIGKILL))
	err = <-done
	requireFunctionError(t, err, emulator.ErrorExit)
	require.ErrorContains(t, err, "signal: killed")
	require.NoFileExists(t, files[0])
	v, err := invoke(t, f, "x")
	require.NoError(t, err)
	require.Equal(t, "x", v, "a cold start follows")
}

func TestInvocationsWaitForEnvironments(t *testing.T) {
	f := function(t, emulator.Settings{Environments: 2})
	done := make(chan error, 8)
	for i := range cap(done) {
		go func() {
			_, err := f.Invoke(context.Background(), fmt.Appendf(nil, `"%d"`, i))
			done <- err
		}()
	}
	for range cap(done) {
		require.NoError(t, <-done)
	}
	require.LessOrEqual(t, len(f.ColdStarts()), 2)

	one := function(t, emulator.Settings{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { _, _ = one.Invoke(context.Background(), []byte(`"hang"`)) }()
	require.Eventually(t, func() bool { return len(one.Processes()) == 1 }, 2*time.Minute, time.Millisecond)
	cancel()
	_, err := one.Invoke(ctx, []byte(`"x"`))
	require.ErrorIs(t, err, context.Canceled)
}

func TestStop(t *testing.T) {
	f := function(t, emulator.Settings{})
	_, err := invoke(t, f, "x")
	require.NoError(t, err)
	require.NoError(t, f.Stop())
	require.Empty(t, f.Processes())
	_, err = invoke(t, f, "x")
	require.ErrorIs(t, err, emulator.ErrStopped)

	deaf := function(t, emulator.Settings{Env: []string{envBootstrap + "=deaf"}})
	_, err = invoke(t, deaf, "x")
	require.NoError(t, err)
	require.NoError(t, deaf.Stop(), "Lambda sends no SIGTERM where no extension asked for it")
}
