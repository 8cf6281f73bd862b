package functions

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/freeaddr"
	"github.com/promlake/promlake/tests/support/lambdatest"
)

// underRIE runs a program under AWS's Runtime Interface Emulator and returns the URL for its
// events.
func underRIE(t *testing.T, program string, env ...string) string {
	t.Helper()
	rie, err := filepath.Abs("../../.cache/rie/aws-lambda-rie")
	require.NoError(t, err)
	if _, err := os.Stat(rie); err != nil {
		require.Empty(t, os.Getenv("CI"), "the emulator is missing: make test-go fetches it")
		t.Skip("tests/functions/fetch-rie.sh fetches the emulator: ", err)
	}
	listen, err := freeaddr.Pick()
	require.NoError(t, err)
	api, err := freeaddr.Pick()
	require.NoError(t, err)
	cmd := exec.Command(rie, "--runtime-interface-emulator-address", listen, "--runtime-api-address", api, programs[program])
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "AWS_LAMBDA_FUNCTION_NAME=" + program, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512"}, env...)
	out := lambdatest.LogTo(t)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 2*time.Minute, 10*time.Millisecond)
	return "http://" + listen + "/2015-03-31/functions/function/invocations"
}

func emulated(t *testing.T, url string, e event) []byte {
	t.Helper()
	c := http.Client{Timeout: time.Minute}
	resp, err := c.Post(url, "application/json", bytes.NewReader(e.payload(t)))
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode, string(b))
	return b
}

// TestRuntimeInterfaceEmulator sends one event to each bootstrap under AWS's own runtime, as a
// check on tests/support/emulator.
func TestRuntimeInterfaceEmulator(t *testing.T) {
	store := t.TempDir()
	env := []string{"PROMLAKE_STORE=file://" + store, "PROMLAKE_INGEST_MODE=direct", "PROMLAKE_COMPACTOR_SETTLE_DELAY=1ms", "PROMLAKE_COMPACTOR_LATE_DELAY=1ms"}
	var a answer
	require.NoError(t, json.Unmarshal(emulated(t, underRIE(t, "ingest-fn", env...), recorded(t, "http-api-write-v1")), &a))
	require.Equal(t, 204, a.Status, a.Body)
	require.JSONEq(t, "null", string(emulated(t, underRIE(t, "compact-fn", env...), recorded(t, "eventbridge-rule"))))
	require.FileExists(t, filepath.Join(store, "v1", "team-a", "manifest.json"))
	e := recorded(t, "http-api-query")
	delete(e["headers"].(map[string]any), "accept-encoding")
	require.NoError(t, json.Unmarshal(emulated(t, underRIE(t, "query-fn", env...), e), &a))
	require.Equal(t, map[string]string{"": "[1764000015 5.25]"}, series(t, a))
}
