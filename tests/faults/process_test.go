package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

// server is one of the two places of a server, whose process is killed and started again.
type server struct {
	name  string
	world *world
	dir   string

	mu  sync.Mutex // held while the process is replaced
	now *incarnation
	n   int // processes so far
}

// incarnation is one process of a server, with its proxy.
type incarnation struct {
	name  string
	url   string
	proxy *proxy
	cmd   *exec.Cmd
	stdin io.Closer
	ended chan struct{} // closed when the process has ended and its log is read
}

func (i *incarnation) String() string { return i.name }

// current returns the running process. It waits for one that is being started.
func (s *server) current() *incarnation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// replace kills a process, unless that was done, and starts another one. When it returns, nothing
// that the process sent takes effect any more.
func (s *server) replace(old *incarnation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != old {
		return nil
	}
	s.now.end()
	s.world.killed.Add(1)
	return s.start()
}

// start starts a process. The caller holds mu, or is alone.
func (s *server) start() error {
	s.n++
	name := fmt.Sprintf("%s%d", s.name, s.n)
	p := newProxy(s.world, name)
	settings, err := json.Marshal(serverSettings{
		Store: s.world.storeURL(p.url()), Dir: s.dir, Seed: s.world.draw(), DeletionDelay: s.world.deletionDelay,
	})
	if err != nil {
		return fmt.Errorf("write server settings: %w", err)
	}
	cmd := exec.Command(s.world.program())
	cmd.Env = append(os.Environ(), serverVariable+"="+string(settings), "GOMAXPROCS=2", "TMPDIR="+s.dir)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("open pipe: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start server: %w", err)
	}
	i := &incarnation{name: name, proxy: p, cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	urls := make(chan string, 1)
	go func() {
		defer close(i.ended)
		s.world.watch(name, stdout, urls)
		_ = cmd.Wait() // it is killed
	}()
	s.now = i
	select {
	case i.url = <-urls:
		return nil
	case <-i.ended:
		return fmt.Errorf("server %s ended", name)
	case <-time.After(patience):
		return fmt.Errorf("server %s is not ready after %s", name, patience)
	}
}

// program returns the path of this program, or at random that of the other version.
func (w *world) program() string {
	if w.other != "" && w.draw()%2 == 0 {
		return w.other
	}
	return os.Args[0]
}

// end kills the process and waits for what it sent.
func (i *incarnation) end() {
	_ = i.cmd.Process.Kill() // it may have ended
	<-i.ended
	_ = i.stdin.Close()
	i.proxy.close()
}

// maxLog is how many lines of the servers' logs a failure shows.
const maxLog = 200

// watch reads a server's log up to its end, sends its URL, and keeps what is no routine.
func (w *world) watch(name string, log io.Reader, urls chan<- string) {
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadString('\n')
		var rec struct{ Msg, URL, Level string }
		if json.Unmarshal([]byte(line), &rec) == nil && rec.Msg == "serving" {
			urls <- rec.URL
		}
		w.mu.Lock()
		if rec.Level != "INFO" && line != "" {
			w.log = append(slices.Clip(w.log[max(0, len(w.log)-maxLog):]), name+" "+line)
		}
		if rec.Msg == "compacted" {
			w.compacted++
		}
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}
