// Package servertest finds or builds the programs of a test, and runs servers on loopback for it.
package servertest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/promlake/promlake/tests/support/freeaddr"
)

const (
	startTries   = 5
	startTimeout = 2 * time.Minute
	stopTimeout  = 10 * time.Second
)

// supervisor is a shell script that runs a server and kills it at the end of the script's standard
// input, so also when the test process dies.
const supervisor = `exec 3<&0; "$@" & server=$!; (cat <&3 >/dev/null; kill -9 $server) & wait $server`

// Start runs the program that command returns, which listens at addr, and returns addr. The server
// ends with the test, before directories that the test has made before are removed.
func Start(t testing.TB, command func(addr string) []string) (addr string) {
	t.Helper()
	var err error
	for range startTries { // another process may take the port between its selection and its use
		if addr, err = freeaddr.Pick(); err != nil {
			break
		}
		if err = start(t, addr, command(addr)); err == nil {
			return addr
		}
	}
	t.Fatalf("start server: %v", err)
	return ""
}

func start(t testing.TB, addr string, command []string) error {
	cmd := exec.Command("sh", append([]string{"-c", supervisor, command[0]}, command...)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the server writes the reason to standard error
		close(exited)
	}()
	t.Cleanup(func() { stop(t, cmd, stdin, exited) })
	return await(addr, exited)
}

// await waits until a process listens at addr.
func await(addr string, exited <-chan struct{}) error {
	deadline := time.After(startTimeout)
	for {
		if conn, err := net.Dial("tcp", addr); err == nil {
			return conn.Close()
		}
		select {
		case <-exited:
			return errors.New("the server exited")
		case <-deadline:
			return fmt.Errorf("the server does not listen after %s", startTimeout)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func stop(t testing.TB, cmd *exec.Cmd, stdin io.Closer, exited <-chan struct{}) {
	_ = stdin.Close() // ends the supervisor; fails if it has ended already
	select {
	case <-exited:
	case <-time.After(stopTimeout):
		t.Logf("server did not end within %s: killing it", stopTimeout)
		_ = cmd.Process.Kill()
		<-exited
	}
}
