package filestore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
)

// locks orders the writes of a key among goroutines and processes. Keys share 256 locks, so that
// lock files need never be removed (removing a lock file races with its next holder).
type locks struct {
	dir string
	// keeps all but one goroutine of this process from blocking a thread in flock
	mu [256]sync.Mutex
}

// lock returns the function that unlocks key. It is held for a few system calls, so waiting for it
// ignores contexts.
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
