package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// clock is the store's clock. It follows the machine's clock, which its callers read, and advances
// with every tick, even if that clock does not: across all processes and restarts, it never returns
// a time twice or a time before one that it returned.
//
// The file dir/.lock/clock holds its state, guarded by flock:
//
//	modification time   the last time that was returned
//	content             "<id of the machine's boot> <ns>": in that boot, no time after ns was
//	                    returned
//
// A crash of the machine may lose the modification time but not the content, which is synced before
// a later time is returned. So the first tick after a boot starts at ns.
type clock struct {
	path string
	boot string // identifier of the machine's boot; empty if the system has none

	mu sync.Mutex // lets at most one goroutine of this process block a thread in flock
}

// clockLease is how far the content of the clock file is ahead of the last time.
const clockLease = 10 * time.Second

func newClock(dir string) *clock {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil
	}
	return &clock{path: filepath.Join(dir, lockDir, "clock"), boot: string(bytes.TrimSpace(boot))}
}

// tick calls use with a time that is later than after and than every time that was returned before.
// It is want if that is later, a time that the machine's clock showed at most freshTime ago. No
// other time is returned until use returns, so what use publishes is visible before anything gets a
// later time.
func (c *clock) tick(want, after time.Time, use func(time.Time) error) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, err := os.OpenFile(c.path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return fmt.Errorf("open clock file: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }() // closing unlocks
	if err := flock(f); err != nil {
		return fmt.Errorf("lock clock file: %w", err)
	}
	last, lease, err := c.read(f)
	if err != nil {
		return err
	}
	t := time.Unix(0, max(want.UnixNano(), last.UnixNano()+1, after.UnixNano()+1))
	if t.After(lease) {
		// The content always has the same length, and is short enough for the file system to write
		// it atomically.
		if _, err := f.WriteAt(fmt.Appendf(nil, "%s %019d\n", c.boot, t.Add(clockLease).UnixNano()), 0); err != nil {
			return fmt.Errorf("write clock file: %w", err)
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("sync clock file: %w", err)
		}
	}
	if err := os.Chtimes(c.path, t, t); err != nil {
		return fmt.Errorf("set clock file: %w", err)
	}
	return use(t)
}

// read returns the last time that was returned, and the time in the file's content.
func (c *clock) read(f *os.File) (last, lease time.Time, err error) {
	epoch := time.Unix(0, 0)
	fi, err := f.Stat()
	if err != nil {
		return epoch, epoch, fmt.Errorf("stat clock file: %w", err)
	}
	if fi.Size() == 0 {
		return epoch, epoch, nil
	}
	b := make([]byte, fi.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		return epoch, epoch, fmt.Errorf("read clock file: %w", err)
	}
	boot, text, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return epoch, epoch, fmt.Errorf("read clock file %s: %w", c.path, err)
	}
	lease = time.Unix(0, ns)
	if boot != c.boot {
		return lease, epoch, nil
	}
	return fi.ModTime(), lease, nil
}

// flock waits for the exclusive lock of f. Holders keep it for a few system calls, so the wait has
// no context.
func flock(f *os.File) error {
	for {
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// Now implements objstore.Store.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	if err := s.prepare(); err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	err = s.clock.tick(s.now(), time.Unix(0, 0), func(t time.Time) error { now = t; return nil })
	if err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	return now, nil
}

// locks orders the writes of a key across goroutines and processes. Keys share 256 locks, so that
// lock files never need to be removed: removal would race with the next holder.
type locks struct {
	dir string
	// lets at most one goroutine of this process block a thread in flock
	mu [256]sync.Mutex
}

// lock locks key and returns the function that unlocks it. Holders keep it for a few system calls,
// so the wait has no context.
func (l *locks) lock(key string) (unlock func() error, err error) {
	i := crc32.ChecksumIEEE([]byte(key)) & 0xff
	l.mu[i].Lock()
	f, err := os.OpenFile(filepath.Join(l.dir, fmt.Sprintf("%02x", i)), os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		l.mu[i].Unlock()
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := flock(f); err != nil {
		err = errors.Join(err, f.Close())
		l.mu[i].Unlock()
		return nil, fmt.Errorf("lock key: %w", err)
	}
	return func() error {
		defer l.mu[i].Unlock()
		if err := f.Close(); err != nil { // closing unlocks
			return fmt.Errorf("unlock key: %w", err)
		}
		return nil
	}, nil
}
