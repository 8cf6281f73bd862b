package query

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// workdir is the directory of one process for fetched data and spilled data, made at first use:
//
//	<dir>/lock       flock'ed while the process lives
//	<dir>/segments/  fetched objects, and parts of objects
//	<dir>/spill/     DuckDB's temporary files
//
// What a former process left behind is removed, for a crash may have left torn files. Temporary
// directories of processes that were killed are those whose lock nobody holds; whoever makes one
// removes them.
type workdir struct {
	configured string // "" = a temporary directory

	mu   sync.Mutex
	dir  string // "" until made
	lock *os.File
}

const (
	segmentsDir = "segments"
	spillDir    = "spill"
	lockFile    = "lock"
)

// path returns the absolute path of a subdirectory, which exists.
func (w *workdir) path(sub string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		if err := w.make(); err != nil {
			return "", fmt.Errorf("make query cache directory: %w", err)
		}
	}
	return filepath.Join(w.dir, sub), nil
}

func (w *workdir) make() error {
	dir, lock, err := w.locked()
	if err != nil {
		return err
	}
	for _, sub := range []string{segmentsDir, spillDir} {
		p := filepath.Join(dir, sub)
		if err := errors.Join(os.RemoveAll(p), os.Mkdir(p, 0o755)); err != nil {
			return errors.Join(err, lock.Close())
		}
	}
	w.dir, w.lock = dir, lock
	return nil
}

// locked returns the directory, with its lock held.
func (w *workdir) locked() (string, *os.File, error) {
	if w.configured == "" {
		tmp, err := filepath.Abs(os.TempDir())
		if err != nil {
			return "", nil, err
		}
		return makeTemporary(tmp)
	}
	if err := os.MkdirAll(w.configured, 0o755); err != nil {
		return "", nil, err
	}
	lock, err := hold(w.configured)
	return w.configured, lock, err
}

// close removes the contents, and the directory if it is a temporary one.
func (w *workdir) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dir == "" {
		return nil
	}
	var err error
	if w.configured == "" {
		err = removeTemporary(w.dir)
	} else {
		err = errors.Join(os.RemoveAll(filepath.Join(w.dir, segmentsDir)), os.RemoveAll(filepath.Join(w.dir, spillDir)))
	}
	w.dir = ""
	return errors.Join(err, w.lock.Close())
}
