package storage

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// settled is how far ahead of the clock compaction runs, so that no segment is too young for it.
const settled = 10 * time.Minute

// compaction holds the resources of the compacting process.
type compaction struct {
	CPU     time.Duration     `json:"cpu_ns"` // user and system time
	Elapsed time.Duration     `json:"elapsed_ns"`
	PeakRSS int64             `json:"peak_rss_bytes"`
	Levels  map[string]*level `json:"levels"`
}

// level adds up the jobs of one level.
type level struct {
	Jobs int           `json:"jobs"`
	Read int64         `json:"samples_read"`
	Took time.Duration `json:"took_ns"` // sum over its jobs, one of which ran at a time
}

// perCore returns the number of samples of a level that were read per second of processor time. The
// level's share of the processor time is estimated by its share of the jobs' time.
func (c *compaction) perCore(name string) float64 {
	var all time.Duration
	for _, l := range c.Levels {
		all += l.Took
	}
	l := c.Levels[name]
	if l == nil || l.Took == 0 {
		return 0
	}
	return float64(l.Read) / (c.CPU.Seconds() * l.Took.Seconds() / all.Seconds())
}

// read returns the samples that all jobs read.
func (c *compaction) read() (n int64) {
	for _, l := range c.Levels {
		n += l.Read
	}
	return n
}

// compact runs promlake compact on the store, one job at a time, until no job is ready.
func compact(ctx context.Context, binary, store, dir string) (*compaction, error) {
	log, err := os.Create(filepath.Join(dir, "compact.log"))
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	defer log.Close() // the child wrote it
	cmd := exec.CommandContext(ctx, binary, "compact", "--store", "file://"+store, "--until-idle", "--now", time.Now().Add(settled).UTC().Format(time.RFC3339),
		"--log.format", "json", "--compactor.compaction-concurrency", "1", "--compactor.data-dir", dir)
	cmd.Stderr = log
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("run promlake compact: %w", err), tail(log))
	}
	ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, errors.New("the system does not report the resources of a process")
	}
	c := &compaction{
		CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), Elapsed: time.Since(begin), PeakRSS: ru.Maxrss << 10,
		Levels: map[string]*level{},
	}
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	return c, c.readLog(log)
}

// readLog adds up the jobs in the log.
func (c *compaction) readLog(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var e struct {
			Message string        `json:"msg"`
			Job     string        `json:"job"` // "<kind> <level> …"
			Read    int64         `json:"read"`
			Took    time.Duration `json:"took"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("parse log line %q: %w", lines.Text(), err)
		}
		words := strings.Fields(e.Job)
		if e.Message != "compacted" || len(words) < 2 || e.Read == 0 {
			continue
		}
		l := c.Levels[words[1]]
		if l == nil {
			l = &level{}
			c.Levels[words[1]] = l
		}
		l.Jobs++
		l.Read += e.Read
		l.Took += e.Took
	}
	return lines.Err()
}

// tail returns an error that quotes the end of the log.
func tail(log *os.File) error {
	const most = 2000
	b, err := os.ReadFile(log.Name())
	if err != nil {
		return err
	}
	return fmt.Errorf("its log ends with:\n%s", b[max(0, len(b)-most):])
}
