package filestore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
)

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
