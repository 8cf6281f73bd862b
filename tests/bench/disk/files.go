// Package disk compacts what a server has stored, and adds up the files that it keeps.
package disk

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Files is the size of files, in bytes of content, by their kind.
type Files map[string]int64

// Bytes returns the size of all files.
func (f Files) Bytes() (sum int64) {
	for _, n := range f {
		sum += n
	}
	return sum
}

// Rollups returns the size of the rollups among them.
func (f Files) Rollups() (sum int64) {
	for kind, n := range f {
		if strings.HasPrefix(kind, "rollup") {
			sum += n
		}
	}
	return sum
}

// add adds the files under dir; kind receives the path below dir and returns "" for files that do
// not count.
func (f Files) add(dir string, kind func(rel string) string) error {
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
			f[k] += info.Size()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("add up files under %s: %w", dir, err)
	}
	return nil
}

// Victoria returns the files of a VictoriaMetrics that has ended, whose folder for data is dir.
func Victoria(dir string) (Files, error) {
	f := Files{}
	return f, f.add(dir, victoriaKind)
}

// victoriaKind names the kind of a file: its samples and their headers, the index of series, or
// other files (caches, locks), which does not count.
func victoriaKind(rel string) string {
	switch top, _, _ := strings.Cut(rel, string(filepath.Separator)); top {
	case "data":
		return "samples: " + filepath.Base(rel)
	case "indexdb":
		return "index"
	}
	return ""
}
