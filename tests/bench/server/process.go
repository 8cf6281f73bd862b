package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/promlake/promlake/tests/support/freeaddr"
)

// ErrNotReady reports a server that did not answer on its ready path in time or ended before.
var ErrNotReady = errors.New("server is not ready")

const (
	readyTimeout = 2 * time.Minute // from start to the first good answer on the ready path
	readyPoll    = 20 * time.Millisecond
	stopTimeout  = 60 * time.Second // from SIGTERM to SIGKILL
	logTail      = 4 << 10          // bytes of output that an error quotes
	logName      = "output.log"
)

// Process is a running server.
type Process struct {
	spec    Spec
	cmd     *exec.Cmd
	addr    string
	writes  string // address of the endpoint for writes
	logPath string
	ended   chan struct{} // closed once the process is gone and err is set
	err     error
}

// Start starts a server on a free loopback port with all its files in dir, an empty folder, and
// waits until it is ready. The caller must Stop it. Errors: ErrNotReady with the end of its output,
// or that of starting it.
func Start(ctx context.Context, spec Spec, dir string) (*Process, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", dir, err)
	}
	for name, content := range spec.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, fmt.Errorf("write %s's %s: %w", spec.Name, name, err)
		}
	}
	addr, err := freeaddr.Pick()
	if err != nil {
		return nil, err
	}
	writes := addr
	if spec.addrFlag != "" {
		if writes, err = freeaddr.Pick(); err != nil {
			return nil, err
		}
	}
	p := &Process{spec: spec, addr: addr, writes: writes, logPath: filepath.Join(dir, logName), ended: make(chan struct{})}
	if err := p.launch(dir); err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// launch starts the program with its output in the log file. The child holds the file open; this
// process need not.
func (p *Process) launch(dir string) error {
	out, err := os.Create(p.logPath)
	if err != nil {
		return fmt.Errorf("create output file: %w", err)
	}
	defer out.Close()                          // nothing was written through this handle
	binary, err := filepath.Abs(p.spec.Binary) // the child starts in dir
	if err != nil {
		return fmt.Errorf("resolve %s: %w", p.spec.Binary, err)
	}
	args := p.spec.Args(p.addr, dir)
	if p.spec.addrFlag != "" {
		args = append(args, p.spec.addrFlag+p.writes)
	}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, out, out
	// Ctrl-C ends this process, which stops the server
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return nil
}

func (p *Process) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	poll := time.NewTicker(readyPoll)
	defer poll.Stop()
	for {
		if ready(ctx, p.URL(p.spec.ReadyPath)) {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%w: %s ended (%w); its output ends with:\n%s", ErrNotReady, p.spec.Name, p.exit(), p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%w: %s within %s (%w); its output ends with:\n%s", ErrNotReady, p.spec.Name, readyTimeout, ctx.Err(), p.tail())
		case <-poll.C:
		}
	}
}

func ready(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close() // only the status counts
	return resp.StatusCode == http.StatusOK
}

// PID is the server's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// WriteURL is the server's endpoint for writes. Its scheme is tcp if that takes lines without HTTP.
func (p *Process) WriteURL() string {
	scheme := "http://"
	if p.spec.WritePath == "" {
		scheme = "tcp://"
	}
	return scheme + p.writes + p.spec.WritePath
}

// URL is the address of a path of the server, such as /metrics.
func (p *Process) URL(path string) string { return "http://" + p.addr + path }

// Stop sends SIGTERM, so that the server can write its buffers, and SIGKILL after a minute. It
// returns an error if the server needed SIGKILL or had ended before.
func (p *Process) Stop() error {
	select {
	case <-p.ended:
		return fmt.Errorf("stop %s: it had ended before: %w", p.spec.Name, p.exit())
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.spec.Name, err)
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.ended:
		return nil
	case <-timer.C:
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.spec.Name, err)
	}
	<-p.ended
	return fmt.Errorf("stop %s: it did not end within %s and was killed", p.spec.Name, stopTimeout)
}

// exit returns how the ended process ended; never nil.
func (p *Process) exit() error {
	if p.err != nil {
		return p.err
	}
	return errors.New("exit status 0")
}

// tail returns the end of the server's output, or the error of reading it.
func (p *Process) tail() string {
	f, err := os.Open(p.logPath)
	if err != nil {
		return err.Error()
	}
	defer f.Close() // read only
	if info, err := f.Stat(); err == nil && info.Size() > logTail {
		if _, err := f.Seek(-logTail, io.SeekEnd); err != nil {
			return err.Error()
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
