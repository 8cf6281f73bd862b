package tempdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// WorkDir is the directory of one process for fetched data and spilled data, made at first use:
//
//	<dir>/lock       flock'ed while the process lives
//	<dir>/segments/  fetched objects, and parts of objects
//	<dir>/spill/     DuckDB's temporary files
//
// The contents that a former process left are removed, because a crash may have left torn files. A
// temporary directory whose lock nobody holds belonged to a killed process; the next process that
// makes one removes it.
type WorkDir struct {
	// Configured is the directory. "": a temporary one, which Close removes.
	Configured string

	mu   sync.Mutex
	dir  string   // "" until made
	temp *Dir     // of a temporary one
	lock *os.File // of a configured one
}

// Subdirectories of a WorkDir.
const (
	Fetched = "segments"
	Spill   = "spill"
)

// temporary begins the names of temporary directories.
const temporary = "promlake-query-"

// Path returns the absolute path of a subdirectory, which exists.
func (w *WorkDir) Path(sub string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		if err := w.make(); err != nil {
			return "", fmt.Errorf("make query cache directory: %w", err)
		}
	}
	return filepath.Join(w.dir, sub), nil
}

func (w *WorkDir) make() error {
	dir, err := w.locked()
	if err != nil {
		return err
	}
	for _, sub := range []string{Fetched, Spill} {
		p := filepath.Join(dir, sub)
		if err := errors.Join(os.RemoveAll(p), os.Mkdir(p, 0o755)); err != nil {
			return errors.Join(err, w.release())
		}
	}
	w.dir = dir
	return nil
}

// locked returns the directory, with its lock held.
func (w *WorkDir) locked() (dir string, err error) {
	if w.Configured == "" {
		if w.temp, err = Make("", temporary); err != nil {
			return "", err
		}
		return w.temp.Path, nil
	}
	if err := os.MkdirAll(w.Configured, 0o755); err != nil {
		return "", err
	}
	w.lock, err = Hold(w.Configured)
	return w.Configured, err
}

// release gives the lock back. It removes a temporary directory.
func (w *WorkDir) release() error {
	if w.Configured == "" {
		return w.temp.Remove()
	}
	return w.lock.Close()
}

// Close removes the contents, and the directory if it is a temporary one.
func (w *WorkDir) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	err := errors.Join(os.RemoveAll(filepath.Join(w.dir, Fetched)), os.RemoveAll(filepath.Join(w.dir, Spill)))
	w.dir = ""
	return errors.Join(err, w.release())
}
