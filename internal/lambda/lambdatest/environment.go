package lambdatest

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Where the functions are.
const (
	region  = "us-east-1"
	account = "123456789012"
)

// environment is one process with its Runtime API.
type environment struct {
	f     *Function
	busy  int // places taken; f.mu guards it
	cmd   *exec.Cmd
	dir   string // its TMPDIR
	srv   *http.Server
	begin time.Time
	cold  *ColdStart // f.mu guards it

	events    chan *invocation // those that no loop of the process has asked for yet
	gone      chan struct{}    // closed when the process has ended and nothing of it is left
	extension atomic.Bool      // it registered, so that SIGTERM reaches it

	mu      sync.Mutex
	pending map[string]*invocation // handed over, not yet answered
	reason  *FunctionError         // why the process was killed, if it was
}

func startEnvironment(f *Function, n int, cold *ColdStart) (*environment, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open Runtime API: %w", err)
	}
	dir, err := os.MkdirTemp("", "lambdatest-")
	if err != nil {
		return nil, fmt.Errorf("make directory of environment: %w", err)
	}
	e := &environment{
		f: f, cold: cold, dir: dir,
		events:  make(chan *invocation, f.set.Concurrency),
		gone:    make(chan struct{}),
		pending: map[string]*invocation{},
	}
	e.srv = &http.Server{Handler: e.routes()}
	go func() { _ = e.srv.Serve(ln) }()
	e.cmd = exec.Command(f.set.Path, f.set.Args...)
	e.cmd.Env = append(e.variables(ln.Addr().String(), n), f.set.Env...)
	e.cmd.Dir = dir
	e.cmd.Stdout, e.cmd.Stderr = f.set.Log, f.set.Log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the test, not for its processes
	e.begin = time.Now()
	if err := e.cmd.Start(); err != nil {
		_ = e.srv.Close()
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start bootstrap: %w", err)
	}
	go e.wait()
	e.dies(Started)
	return e, nil
}

// variables are those that Lambda sets ("Defined runtime environment variables" in its developer guide).
func (e *environment) variables(api string, n int) []string {
	s := e.f.set
	v := []string{
		"AWS_LAMBDA_RUNTIME_API=" + api,
		"AWS_LAMBDA_FUNCTION_NAME=" + s.Name,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=" + strconv.Itoa(s.MemoryMB),
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + s.Name,
		fmt.Sprintf("AWS_LAMBDA_LOG_STREAM_NAME=2024/01/01/[$LATEST]%032x", n),
		"AWS_REGION=" + region,
		"AWS_DEFAULT_REGION=" + region,
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023",
		"_HANDLER=bootstrap",
		"LAMBDA_TASK_ROOT=" + e.dir,
		"LAMBDA_RUNTIME_DIR=" + e.dir,
		"LANG=en_US.UTF-8",
		"TZ=:UTC",
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"TMPDIR=" + e.dir,
		"HOME=" + e.dir,
	}
	if s.Concurrency > 1 {
		v = append(v, "AWS_LAMBDA_MAX_CONCURRENCY="+strconv.Itoa(s.Concurrency))
	}
	return v
}

// wait cleans up after the process.
func (e *environment) wait() {
	_ = e.cmd.Wait() // how it ended is in ProcessState
	_ = e.srv.Close()
	_ = os.RemoveAll(e.dir)
	e.f.forget(e)
	e.blame(&FunctionError{ErrorExit, fmt.Sprintf("Runtime exited: %s", e.cmd.ProcessState)})
	close(e.gone) // first, so that an event that comes after fail fails itself
	e.fail()
}

// blame notes why the process ends, unless that is known.
func (e *environment) blame(reason *FunctionError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason == nil {
		e.reason = reason
	}
}

// fail ends everything that was handed over or waits, once the process is gone.
func (e *environment) fail() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, inv := range e.pending {
		inv.fail(e.reason)
	}
	clear(e.pending)
	for {
		select {
		case inv := <-e.events:
			inv.fail(e.reason)
		default:
			return
		}
	}
}

func (e *environment) kill() { _ = syscall.Kill(-e.cmd.Process.Pid, syscall.SIGKILL) }

// dies asks the test whether the process dies at this moment, and kills it.
func (e *environment) dies(m Moment) bool {
	if e.f.set.Kill == nil || !e.f.set.Kill(m) {
		return false
	}
	e.kill()
	return true
}

// grace is what a process with an internal extension has between SIGTERM and SIGKILL.
const grace = 500 * time.Millisecond

func (e *environment) terminate() error {
	if !e.extension.Load() { // Lambda sends no SIGTERM
		e.kill()
		<-e.gone
		return nil
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(grace, e.kill)
	<-e.gone
	if late.Stop() && e.cmd.ProcessState.Success() {
		return nil
	}
	return fmt.Errorf("end process within %s of SIGTERM: %s", grace, e.cmd.ProcessState)
}
