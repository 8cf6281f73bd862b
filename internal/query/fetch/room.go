package fetch

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/promlake/promlake/internal/base/settings"
)

// FullError reports that there is no room for more local files.
type FullError struct {
	Limit  int64 // bytes: Settings.LimitBytes, or Settings.MemoryBytes if Memory is set
	Needed int64 // bytes of all files in use and of the one to be fetched
	Memory bool  // the memory is full, after the disk

	disk error // the system's error: the disk has less room than Limit
}

// Error implements error.
func (e *FullError) Error() string {
	switch {
	case e.disk != nil:
		return settings.ForOperator(fmt.Sprintf("the disk is full although fetched objects may have %d bytes (--query.cache-bytes); lower that, or enlarge the disk (/tmp of a Lambda function): %v", e.Limit, e.disk))
	case e.Memory:
		return settings.ForOperator(fmt.Sprintf("query exceeds the limit of %d bytes of fetched objects in memory, after the disk is full: with those of other queries it needs %d; narrow the selector or the time range, or raise --query.cache-bytes (and enlarge the disk: /tmp of a Lambda function)", e.Limit, e.Needed))
	default:
		return settings.ForOperator(fmt.Sprintf("there is no room for fetched objects on disk: %d bytes would be in use, the limit is %d (--query.cache-bytes)", e.Needed, e.Limit))
	}
}

// Unwrap returns the system's error if the disk has less room than the limit, else nil.
func (e *FullError) Unwrap() error { return e.disk }

// QueryLimit reports whether a limit of Promlake is exceeded, for which the HTTP API answers 422.
func (e *FullError) QueryLimit() bool { return e.disk == nil }

func isFull(err error) bool {
	var full *FullError
	return errors.As(err, &full)
}

// reserve sets aside n bytes on disk for a file. It evicts complete files that nobody uses.
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

// unreserve returns a file's reservation when it is complete or has failed. The caller holds c.mu.
func (c *Cache) unreserve(f *file) {
	c.reserved -= f.reserved
	f.reserved = 0
}

// room reserves n bytes for a file on disk, or, with spill, in memory if the disk has none.
func (w *work) room(n int64, spill bool) error {
	if w.file.memory != nil {
		return w.cache.countMemory(w.file, n)
	}
	err := w.cache.reserve(w.file, n)
	if !isFull(err) || !spill {
		return err
	}
	return w.spill(n)
}

// spill moves an empty file that needs n bytes to memory. A file in memory lives as long as it is
// pinned.
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
	return errors.Join(err, c.countMemory(f, n))
}

// countMemory counts n bytes of a file against the limit of memory.
func (c *Cache) countMemory(f *file, n int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if needed := c.inMemory + n; needed > c.settings.MemoryBytes {
		return &FullError{Limit: c.settings.MemoryBytes, Needed: needed, Memory: true}
	}
	f.inMemory += n
	c.inMemory += n
	return nil
}

// free releases a file in memory. The caller holds c.mu.
func (c *Cache) free(f *file) error {
	c.inMemory -= f.inMemory
	f.inMemory = 0
	return f.memory.Close()
}

// written turns the error of a write to a full disk into a FullError.
func (c *Cache) written(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return &FullError{Limit: c.settings.LimitBytes, disk: err}
	}
	return err
}
