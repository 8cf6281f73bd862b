package storage

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// result holds the measurements of one server.
type result struct {
	Name    string           `json:"name"`
	Samples int64            `json:"samples"`
	Files   map[string]int64 `json:"files"`            // bytes by kind of file
	Levels  []string         `json:"levels,omitempty"` // of Promlake's live blocks
	// of Promlake's files of samples: bytes by column
	Columns map[string]int64 `json:"columns,omitempty"`
	Compact *compaction      `json:"compact,omitempty"`
	Scan    *scan            `json:"scan,omitempty"`
}

// bytes returns the size of all files that count.
func (r *result) bytes() int64 {
	var sum int64
	for _, n := range r.Files {
		sum += n
	}
	return sum
}

// rollups returns the size of the rollups among them.
func (r *result) rollups() (sum int64) {
	for kind, n := range r.Files {
		if strings.HasPrefix(kind, "rollup") {
			sum += n
		}
	}
	return sum
}

// share returns bytes per sample.
func (r *result) share(bytes int64) float64 { return float64(bytes) / float64(r.Samples) }

// addFiles adds the sizes (in bytes of content) of the files under dir by their kind; kind receives
// the path below dir and returns "" for files that do not count.
func (r *result) addFiles(dir string, kind func(rel string) string) error {
	if r.Files == nil {
		r.Files = map[string]int64{}
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if k := kind(rel); k != "" {
			r.Files[k] += info.Size()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add up files under %s: %w", dir, err)
	}
	return nil
}
