// Package workdir makes and locks the directory in which one process keeps fetched and spilled
// data.
package workdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Dir is the directory of one process for fetched data and spilled data, made at first use:
//
//	<dir>/lock       flock'ed while the process lives
//	<dir>/segments/  fetched objects, and parts of objects
//	<dir>/spill/     DuckDB's temporary files
//
// The contents that a former process left are removed, because a crash may have left torn files. A
// temporary directory whose lock nobody holds belonged to a killed process; the next process that
// makes one removes it.
type Dir struct {
	// Configured is the directory. "": a temporary one, which Close removes.
	Configured string

	mu   sync.Mutex
	dir  string // "" until made
	lock *os.File
}

// Subdirectories of a Dir.
const (
	Fetched = "segments"
	Spill   = "spill"
)

const lockFile = "lock"

// Path returns the absolute path of a subdirectory, which exists.
func (w *Dir) Path(sub string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		if err := w.make(); err != nil {
			return "", fmt.Errorf("make query cache directory: %w", err)
		}
	}
	return filepath.Join(w.dir, sub), nil
}

func (w *Dir) make() error {
	dir, lock, err := w.locked()
	if err != nil {
		return err
	}
	for _, sub := range []string{Fetched, Spill} {
		p := filepath.Join(dir, sub)
		if err := errors.Join(os.RemoveAll(p), os.Mkdir(p, 0o755)); err != nil {
			return errors.Join(err, lock.Close())
		}
	}
	w.dir, w.lock = dir, lock
	return nil
}

// locked returns the directory, with its lock held.
func (w *Dir) locked() (string, *os.File, error) {
	if w.Configured == "" {
		tmp, err := filepath.Abs(os.TempDir())
		if err != nil {
			return "", nil, err
		}
		return makeTemporary(tmp)
	}
	if err := os.MkdirAll(w.Configured, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := hold(w.Configured)
	return w.Configured, lock, err
}

// Close removes the contents, and the directory if it is a temporary one.
func (w *Dir) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	var err error
	if w.Configured == "" {
		err = removeTemporary(w.dir)
	} else {
		err = errors.Join(os.RemoveAll(filepath.Join(w.dir, Fetched)), os.RemoveAll(filepath.Join(w.dir, Spill)))
	}
	w.dir = ""
	return errors.Join(err, w.lock.Close())
}
