package disk

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
	"time"

	"github.com/promlake/promlake/tests/bench/proc"
)

// Settled is how far ahead of the clock compaction runs, so that no segment is too young for it: it
// is longer than the defaults of --compactor.settle-delay, --compactor.window-delay and
// --compactor.late-delay.
const Settled = 12 * time.Minute

// Compaction holds the resources of the compacting process.
type Compaction struct {
	CPU     time.Duration     `json:"cpu_ns"` // user and system time
	Elapsed time.Duration     `json:"elapsed_ns"`
	PeakRSS int64             `json:"peak_rss_bytes"` // as proc.Run returns it
	Levels  map[string]*Level `json:"levels"`
}

// Level adds up the jobs of one level.
type Level struct {
	Jobs int           `json:"jobs"`
	Read int64         `json:"samples_read"`
	Took time.Duration `json:"took_ns"` // sum over its jobs, one of which ran at a time
}

// PerCore returns the number of samples of a level that were read per second of processor time. The
// level's share of the processor time is estimated by its share of the jobs' time.
func (c *Compaction) PerCore(name string) float64 {
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

// Read returns the samples that all jobs read.
func (c *Compaction) Read() (n int64) {
	for _, l := range c.Levels {
		n += l.Read
	}
	return n
}

// Compact runs promlake compact on the store until no job is ready, once for each time ahead of the
// clock. It keeps its log and its temporary files in dir.
func Compact(ctx context.Context, binary, store, dir string, ahead ...time.Duration) (*Compaction, error) {
	c := &Compaction{Levels: map[string]*Level{}}
	for _, d := range ahead {
		if err := c.run(ctx, binary, store, dir, d); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// run runs promlake compact as if it were some time later, and adds its costs.
func (c *Compaction) run(ctx context.Context, binary, store, dir string, ahead time.Duration) error {
	log, err := os.Create(filepath.Join(dir, "compact.log"))
	if err != nil {
		return fmt.Errorf("create log: %w", err)
	}
	defer log.Close() // the child wrote it
	cmd := exec.CommandContext(ctx, binary, "compact", "--store", "file://"+store, "--until-idle", "--now", time.Now().Add(ahead).UTC().Format(time.RFC3339),
		"--log.format", "json", "--compactor.compaction-concurrency", "1", "--compactor.data-dir", dir)
	cmd.Stderr = log
	begin := time.Now()
	peak, err := proc.Run(cmd)
	if err != nil {
		return errors.Join(fmt.Errorf("run promlake compact: %w", err), tail(log))
	}
	c.CPU += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	c.Elapsed += time.Since(begin)
	c.PeakRSS = max(c.PeakRSS, peak)
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	return c.readLog(log)
}

// readLog adds up the jobs in the log.
func (c *Compaction) readLog(r io.Reader) error {
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
			l = &Level{}
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
