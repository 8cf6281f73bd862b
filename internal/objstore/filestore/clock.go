package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// clock is the store's clock. It follows the machine's clock, and advances with every tick whatever
// that clock does: it never gives a time twice, and never one before a time that it gave, also to
// other processes and after a restart of the machine.
//
// The file dir/.lock/clock holds its state, guarded by flock:
//
//	modification time   the last time that was given
//	content             "<id of the machine's boot> <ns>": no time after ns was given during that boot
//
// A crash of the machine may lose the modification time, and the content not, which is synced
// before a later time is given. So the first tick after a boot begins at ns.
type clock struct {
	path string
	now  func() time.Time
	boot string // an identifier of the machine's boot; empty where the system has none

	mu sync.Mutex // keeps all but one goroutine of this process from blocking a thread in flock
}

// clockLease is how far ahead of the last time the clock file's content is.
const clockLease = 10 * time.Second

func newClock(dir string, now func() time.Time) *clock {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		boot = nil
	}
	return &clock{path: filepath.Join(dir, lockDir, "clock"), now: now, boot: string(bytes.TrimSpace(boot))}
}

// tick calls use with a time that is later than after and than every time that was given. No other
// time is given until use returns: what use publishes is visible before anything gets a later time.
func (c *clock) tick(after time.Time, use func(time.Time) error) (err error) {
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
	t := time.Unix(0, max(c.now().UnixNano(), last.UnixNano()+1, after.UnixNano()+1))
	if t.After(lease) {
		if err := c.renew(f, t.Add(clockLease)); err != nil {
			return err
		}
	}
	if err := os.Chtimes(c.path, t, t); err != nil {
		return fmt.Errorf("set clock file: %w", err)
	}
	return use(t)
}

// read returns the last time that was given and the time up to which the file's content vouches.
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

// renew vouches for the times up to lease. The content has always the same length, and is small
// enough for the file system to write it whole.
func (c *clock) renew(f *os.File, lease time.Time) error {
	if _, err := f.WriteAt(fmt.Appendf(nil, "%s %019d\n", c.boot, lease.UnixNano()), 0); err != nil {
		return fmt.Errorf("write clock file: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync clock file: %w", err)
	}
	return nil
}

// flock waits for the exclusive lock of f. It is held for a few system calls, so the wait ignores
// contexts.
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
	err = s.clock.tick(time.Unix(0, 0), func(t time.Time) error { now = t; return nil })
	if err != nil {
		return time.Time{}, fmt.Errorf("read the store's clock: %w", err)
	}
	return now, nil
}
