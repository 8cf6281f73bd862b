package pageapp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

const (
	// MaxFiles is how many dashboards a folder may have.
	MaxFiles = 1000
	// MaxBytes is how large a dashboard may be.
	MaxBytes = 10 << 20
)

// ErrNotFound is the error for a name that no dashboard of the folder has.
var ErrNotFound = errors.New("no such dashboard")

// A Folder is a directory of dashboards. Files outside of it cannot be read, whatever symbolic
// links within it name. The zero value is an empty folder.
type Folder struct {
	root *os.Root
}

// Open opens a directory. An empty path is an empty folder.
func Open(dir string) (Folder, error) {
	if dir == "" {
		return Folder{}, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Folder{}, fmt.Errorf("open folder of dashboards: %w", err)
	}
	return Folder{root}, nil
}

// Close releases the directory.
func (f Folder) Close() error {
	if f.root == nil {
		return nil
	}
	return f.root.Close()
}

// Entry describes a dashboard. Error says why it cannot be shown.
type Entry struct {
	Name  string   `json:"name"`
	UID   string   `json:"uid,omitempty"` // Grafana's
	Title string   `json:"title,omitempty"`
	Tags  []string `json:"tags,omitempty"`
	Error string   `json:"error,omitempty"`
}

// List describes all dashboards, ordered by name. A file that cannot be read has an Entry with its
// error. Directories and files whose names begin with a dot are left out.
func (f Folder) List() ([]Entry, error) {
	out := []Entry{}
	if f.root == nil {
		return out, nil
	}
	err := fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !valid(name):
			return nil
		case len(out) == MaxFiles:
			return fmt.Errorf("the folder has more than %d dashboards: move some to another folder", MaxFiles)
		}
		out = append(out, f.describe(name))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list dashboards: %w", err)
	}
	return out, nil
}

func (f Folder) describe(name string) Entry {
	e := Entry{Name: name}
	content, err := f.Read(name)
	type header struct {
		UID   string   `json:"uid"`
		Title string   `json:"title"`
		Tags  []string `json:"tags"`
	}
	var head struct {
		header
		Dashboard header `json:"dashboard"` // as Grafana's HTTP API has it
	}
	if err == nil {
		err = json.Unmarshal(content, &head)
	}
	if err != nil {
		e.Error = err.Error()
	}
	if head.Title == "" {
		head.header = head.Dashboard
	}
	e.UID, e.Title, e.Tags = head.UID, head.Title, head.Tags
	return e
}

// valid reports whether a name can be that of a dashboard.
func valid(name string) bool {
	return fs.ValidPath(name) && path.Ext(name) == ".json" && !strings.HasPrefix(name, ".") && !strings.Contains(name, "/.")
}

// Read returns the content of a dashboard, which is valid JSON. Errors wrap ErrNotFound if there is
// none of that name.
func (f Folder) Read(name string) ([]byte, error) {
	if f.root == nil || !valid(name) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	file, err := f.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	if err != nil {
		return nil, fmt.Errorf("open dashboard: %w", err)
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open dashboard: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %q is no file", ErrNotFound, name)
	}
	content, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read dashboard: %w", err)
	}
	if len(content) > MaxBytes {
		return nil, fmt.Errorf("dashboard %q has more than %d bytes", name, MaxBytes)
	}
	if !json.Valid(content) {
		return nil, fmt.Errorf("dashboard %q is not JSON", name)
	}
	return content, nil
}
