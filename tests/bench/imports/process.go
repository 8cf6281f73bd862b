package imports

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/promlake/promlake/tests/bench/proc"
)

// poll is how often a running import is looked at.
const poll = 5 * time.Millisecond

// usage is what a process has used.
type usage struct {
	CPU, Elapsed time.Duration
	PeakRSS      uint64 // bytes
}

// target is a store into which the source is imported, in a folder of its own.
type target struct {
	binary, source, dir string
	args                []string
}

func (t target) store() string { return filepath.Join(t.dir, "store") }

// run imports, and kills the process as soon as stop returns true. It reports whether the process
// ended by itself; then it has imported everything.
func (t target) run(ctx context.Context, stop func() bool) (u usage, ended bool, err error) {
	log, err := os.Create(filepath.Join(t.dir, "import.log"))
	if err != nil {
		return u, false, fmt.Errorf("create log: %w", err)
	}
	defer log.Close() // the child wrote it
	args := append([]string{"import", "tsdb", t.source, "--store", "file://" + t.store(), "--compactor.data-dir", t.dir}, t.args...)
	cmd := exec.CommandContext(ctx, t.binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return u, false, fmt.Errorf("start promlake import: %w", err)
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	killed := false
	for looks := time.NewTicker(poll); ; {
		select {
		case err = <-over:
			looks.Stop()
			u.Elapsed, u.CPU = time.Since(begin), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
			if killed && err != nil {
				return u, false, nil
			}
			if err != nil {
				text, _ := os.ReadFile(log.Name()) // the error says enough without it
				return u, false, fmt.Errorf("run promlake import: %w; it wrote:\n%s", err, text)
			}
			return u, true, nil
		case <-looks.C:
			// The resources that wait returns include the memory of this process, which it forked.
			if now, err := proc.Read(cmd.Process.Pid); err == nil {
				u.PeakRSS = max(u.PeakRSS, now.PeakRSS)
			}
			if !killed && stop() {
				killed = true
				if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
					return u, false, fmt.Errorf("kill promlake import: %w", err)
				}
			}
		}
	}
}

func never() bool { return false }

// files returns the number of files of a store: objects, also of blocks that are not live. A folder
// may vanish meanwhile.
func files(dir string) (n int) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".") {
			n++
		}
		return nil
	})
	return n
}
