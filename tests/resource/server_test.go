package resource

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/servertest"
)

const (
	memoryLimit  = 1 << 30
	memoryMost   = memoryLimit * 12 / 10
	queryTimeout = 10 * time.Second
	patience     = 5 * time.Minute // for states that must come
)

// program is the binary under test.
var program string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "promlake-resource-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program, err = servertest.Program("cmd/promlake", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// server is a running process.
type server struct {
	t    *testing.T
	addr string
	rpc  string // the address of Flight SQL
	// listeners are the addresses for lines by protocol.
	listeners map[string]string
	token     string // of requests, if not empty
	pid       int
	done      chan struct{} // closed when the process has ended
	log       *logBuffer
	most      atomic.Int64 // resident bytes
	flying    sync.Map     // what each client sends
	over      string       // what clients sent when the process exceeded the memory; set before done
}

// start runs the program over a new directory, with more flags, and watches its memory.
func start(t *testing.T, flags ...string) *server {
	t.Helper()
	s := &server{t: t, listeners: map[string]string{}, done: make(chan struct{}), log: &logBuffer{}}
	cmd := exec.Command(program, append([]string{"serve", "--store", "file://" + t.TempDir(), "--listen", "127.0.0.1:0", "--memory-limit", fmt.Sprint(memoryLimit),
		"--query.timeout", queryTimeout.String(), "--web.enable-admin-api", "--no-compactor.enabled", "--flight.listen-address", "127.0.0.1:0", "--scrape.queue-dir", t.TempDir()}, flags...)...)
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	require.NoError(t, cmd.Start())
	s.pid = cmd.Process.Pid
	go func() {
		_ = cmd.Wait() // the requests show how it ended
		close(s.done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-s.done
	})
	url := regexp.MustCompile(`msg=serving url=http://(\S+)`)
	s.await("the server answers", func() bool {
		if found := url.FindStringSubmatch(s.log.String()); found != nil {
			s.addr = found[1]
		}
		return s.addr != ""
	})
	found := regexp.MustCompile(`msg="serving Flight SQL" listen=(\S+)`).FindStringSubmatch(s.log.String())
	require.NotNil(t, found, "%s", s.log)
	s.rpc = found[1]
	for _, found := range regexp.MustCompile(`msg="accepting lines" .*protocol=(\S+) address=(\S+)`).FindAllStringSubmatch(s.log.String(), -1) {
		s.listeners[found[1]] = found[2]
	}
	go s.watch()
	return s
}

// watch measures the resident memory until the process has ended.
func (s *server) watch() {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-tick.C:
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.pid)); err == nil {
			pages, _ := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
			s.most.Store(max(s.most.Load(), pages*int64(os.Getpagesize())))
		}
		if s.most.Load() > memoryMost && s.over == "" {
			var b strings.Builder
			s.flying.Range(func(_, what any) bool { fmt.Fprintln(&b, what); return true })
			s.over = b.String()
			_ = syscall.Kill(s.pid, syscall.SIGQUIT) // it prints what its goroutines do
		}
	}
}

func (s *server) dead() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// await waits for a state that must be reached while the process lives.
func (s *server) await(what string, state func() bool) {
	s.t.Helper()
	for end := time.Now().Add(patience); !state(); time.Sleep(10 * time.Millisecond) {
		require.False(s.t, s.dead(), "the process ended before %s:\n%s\n%s", what, s.over, s.log)
		require.True(s.t, time.Now().Before(end), "it never came: %s\n%s", what, s.log)
	}
}

// ticks returns the processor time of the process, in hundredths of a second.
func (s *server) ticks() int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return user + system
}

// idle requires the process to stop working without requests. One second in a minute with at most a
// quarter of a processor is enough, so that a garbage collection or a slow machine fails no test.
func (s *server) idle() {
	s.t.Helper()
	var used []int64
	for range 60 {
		before := s.ticks()
		time.Sleep(time.Second)
		n := s.ticks() - before
		if n < 25 {
			return
		}
		used = append(used, n)
	}
	require.Fail(s.t, "the process goes on working without clients", "ticks a second: %v\n%s", used, s.log)
}

// holds checks the conditions that must hold at any time.
func (s *server) holds() {
	s.t.Helper()
	if dead := s.dead(); s.most.Load() > memoryMost {
		require.Fail(s.t, "too much memory", "%d resident bytes\n%s\n%s", s.most.Load(), s.over, s.log)
	} else if dead {
		require.Fail(s.t, "the process ended", "%s", s.log)
	}
	require.Empty(s.t, s.log.panics(), "a handler panicked")
}

// serves requires that the server ingests new samples and returns them.
func (s *server) serves() {
	s.t.Helper()
	name := fmt.Sprintf("alive_%d", time.Now().UnixNano())
	body := writeV1(series(name, 1, 1))
	s.await("a write is taken", func() bool {
		return s.post(s.t.Context(), "/api/v1/write", writeType, body).code == http.StatusNoContent
	})
	s.await("a query is answered", func() bool {
		a := s.get(s.t.Context(), "/api/v1/query?query="+name)
		return a.code == http.StatusOK && strings.Contains(a.body, `"value"`)
	})
}

// recovers requires that the process stops working, holds its limits, and serves.
func (s *server) recovers() {
	s.t.Helper()
	s.idle()
	s.holds()
	s.serves()
	s.t.Logf("at most %d MiB", s.most.Load()>>20)
}

// answer is the result of a request; code 0 means none.
type answer struct {
	code int
	body string
	took time.Duration
}

const (
	writeType = "application/x-protobuf"
	formType  = "application/x-www-form-urlencoded"
)

func (s *server) get(ctx context.Context, target string) answer {
	return s.do(ctx, http.MethodGet, target, "", nil)
}

func (s *server) post(ctx context.Context, target, contentType string, body []byte) answer {
	return s.do(ctx, http.MethodPost, target, contentType, bytes.NewReader(body))
}

func (s *server) do(ctx context.Context, method, target, contentType string, body io.Reader, header ...string) answer {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+s.addr+target, body)
	if err != nil {
		return answer{}
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	begin := time.Now()
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{took: time.Since(begin)}
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	_, _ = io.Copy(io.Discard, resp.Body)
	return answer{resp.StatusCode, string(text), time.Since(begin)}
}

// logBuffer holds the output of a process, at least its end. It is safe for concurrent use.
type logBuffer struct {
	mu    sync.Mutex
	b     bytes.Buffer
	panic string // what was written with the first panic
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.panic == "" && bytes.Contains(p, []byte("panic")) {
		l.panic = string(p)
	}
	return l.b.Write(p)
}

// panics returns what the process wrote of its first panic.
func (l *logBuffer) panics() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.panic
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.b.String()
	return s[max(0, len(s)-math.MaxInt16):]
}
