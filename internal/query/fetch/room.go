package fetch

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// FullError says that there is no room for more local files.
type FullError struct {
	Limit  int64 // bytes: Settings.LimitBytes on disk, Settings.MemoryBytes beyond it
	Needed int64 // bytes of all files that are in use, and of the one that is to be made
	Memory bool  // it is the memory that is full, after the disk

	disk error // the disk has less room than the limit, says the system
}

// Error implements error.
func (e *FullError) Error() string {
	switch {
	case e.disk != nil:
		return fmt.Sprintf("the disk has less room than the %d bytes that fetched objects may have (--query.cache-bytes); lower that, or enlarge the disk, which is /tmp of a function: %v", e.Limit, e.disk)
	case e.Memory:
		return fmt.Sprintf("query exceeds the limit of %d bytes of fetched objects in memory for which there is no room on disk, it needs %d with those of other queries; narrow the selector or the time range, or raise --query.cache-bytes (and the disk, which is /tmp of a function)", e.Limit, e.Needed)
	default:
		return fmt.Sprintf("there is no room for fetched objects on disk: %d bytes would be in use, the limit is %d (--query.cache-bytes)", e.Needed, e.Limit)
	}
}

// Unwrap returns the system's error, if it is the disk that is full.
func (e *FullError) Unwrap() error { return e.disk }

// QueryLimit tells the HTTP API that this is a limit (422), unless the system refused.
func (e *FullError) QueryLimit() bool { return e.disk == nil }

func isFull(err error) bool {
	var full *FullError
	return errors.As(err, &full)
}

// reserve takes the room on disk that a file of n bytes needs, from complete files that nobody
// uses.
func (c *Cache) reserve(f *file, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.shrink(n); err != nil {
		return err
	}
	if needed := c.kept.Used() + c.reserved + n; needed > c.settings.LimitBytes {
		return &FullError{Limit: c.settings.LimitBytes, Needed: needed}
	}
	f.reserved += n
	c.reserved += n
	return nil
}

// unreserve gives back what a file had reserved, as it is complete or given up. c.mu is held.
func (c *Cache) unreserve(f *file) {
	c.reserved -= f.reserved
	f.reserved = 0
}

// room finds a place for n bytes of a file: on disk, or, if spill says so, in memory.
func (w *work) room(n int64, spill bool) error {
	if w.file.memory != nil {
		return w.cache.remember(w.file, n)
	}
	err := w.cache.reserve(w.file, n)
	if !isFull(err) || !spill {
		return err
	}
	return w.spill(n)
}

// spill puts a file of n bytes, of which nothing is there yet, into memory. It lives as long as it
// is pinned.
func (w *work) spill(n int64) error {
	c, f := w.cache, w.file
	fd, err := unix.MemfdCreate("promlake-fetch", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make a file in memory: %w", err)
	}
	memory := os.NewFile(uintptr(fd), fmt.Sprintf("/proc/self/fd/%d", fd))
	c.mu.Lock()
	err = errors.Join(w.out.Close(), os.Remove(f.path))
	c.unreserve(f)
	w.out, w.final, f.memory, f.path = memory, memory.Name(), memory, memory.Name()
	c.mu.Unlock()
	return errors.Join(err, c.remember(f, n))
}

// remember counts n bytes of a file in memory.
func (c *Cache) remember(f *file, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if needed := c.remembered + n; needed > c.settings.MemoryBytes {
		return &FullError{Limit: c.settings.MemoryBytes, Needed: needed, Memory: true}
	}
	f.remembered += n
	c.remembered += n
	return nil
}

// free lets go of a file in memory. c.mu is held.
func (c *Cache) free(f *file) error {
	c.remembered -= f.remembered
	f.remembered = 0
	return f.memory.Close()
}

// written says of an error of a write whether the disk is full.
func (c *Cache) written(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return &FullError{Limit: c.settings.LimitBytes, disk: err}
	}
	return err
}
