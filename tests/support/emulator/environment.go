package emulator

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Region and account of the emulated functions.
const (
	region  = "us-east-1"
	account = "123456789012"
)

// environment is one execution environment: a process with its own Runtime API.
type environment struct {
	f     *Function
	busy  int // invocations that claimed a slot; guarded by f.mu
	cmd   *exec.Cmd
	dir   string // its TMPDIR
	srv   *http.Server
	begin time.Time
	cold  *ColdStart // guarded by f.mu

	events    chan *invocation // not yet delivered to the process
	gone      chan struct{}    // closed after the process has ended and its files are removed
	extension atomic.Bool      // the process registered an extension, so Lambda sends it SIGTERM

	mu      sync.Mutex
	pending map[string]*invocation // delivered, not yet answered
	reason  *FunctionError         // why the process ended; nil while it runs
}

func startEnvironment(f *Function, n int, cold *ColdStart) (*environment, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open Runtime API: %w", err)
	}
	dir, err := os.MkdirTemp("", "lambda-")
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
	e.cmd.Env = append(e.variables(n), f.set.Env...)
	// nothing overrides it
	e.cmd.Env = append(e.cmd.Env, "AWS_LAMBDA_RUNTIME_API="+ln.Addr().String())
	e.cmd.Dir = dir
	e.cmd.Stdout, e.cmd.Stderr = f.set.Log, f.set.Log
	// Ctrl-C ends the caller, which ends its processes
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	e.begin = time.Now()
	if err := e.cmd.Start(); err != nil {
		_ = e.srv.Close()
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("start bootstrap: %w", err)
	}
	if err := e.writePID(); err != nil {
		e.kill()
		go e.wait()
		return nil, err
	}
	go e.wait()
	return e, nil
}

// pidFile returns the path of the file with the process' id, "" without Settings.PIDs.
func (e *environment) pidFile() string {
	if e.f.set.PIDs == "" {
		return ""
	}
	return filepath.Join(e.f.set.PIDs, fmt.Sprintf("%d.pid", e.cmd.Process.Pid))
}

func (e *environment) writePID() error {
	if e.pidFile() == "" {
		return nil
	}
	if err := os.WriteFile(e.pidFile(), fmt.Appendln(nil, e.cmd.Process.Pid), 0o600); err != nil {
		return fmt.Errorf("write process id: %w", err)
	}
	return nil
}

// variables returns the variables that Lambda sets ("Defined runtime environment variables" in its
// developer guide), except for the address of the Runtime API.
func (e *environment) variables(n int) []string {
	s := e.f.set
	v := []string{
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

// wait removes the environment after the end of its process. The id's file goes after forget, so
// that no event goes to a process without such a file.
func (e *environment) wait() {
	_ = e.cmd.Wait() // ProcessState holds the result
	_ = e.srv.Close()
	_ = os.RemoveAll(e.dir)
	e.f.forget(e)
	_ = os.Remove(e.pidFile())
	e.blame(&FunctionError{ErrorExit, fmt.Sprintf("Runtime exited: %s", e.cmd.ProcessState)})
	close(e.gone) // before fail: invoke fails the events that arrive later
	e.fail()
}

// blame records why the process ends; the first reason counts.
func (e *environment) blame(reason *FunctionError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.reason == nil {
		e.reason = reason
	}
}

// fail ends every invocation of the process, delivered or not. The process has ended.
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

// terminate ends the process as Lambda does: SIGTERM if it registered an extension, else SIGKILL.
func (e *environment) terminate() error {
	if !e.extension.Load() {
		e.kill()
		<-e.gone
		return nil
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(e.f.set.Grace, e.kill)
	<-e.gone
	if late.Stop() && e.cmd.ProcessState.Success() {
		return nil
	}
	return fmt.Errorf("end process within %s of SIGTERM: %s", e.f.set.Grace, e.cmd.ProcessState)
}
