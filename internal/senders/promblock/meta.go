// Package promblock reads the blocks of Prometheus' TSDB, as Prometheus, Thanos and Mimir write
// them: directories with meta.json, index, chunks and tombstones. It also keeps the chunks that a
// server sends, to read them in the same way. The formats are upstream's
// (github.com/prometheus/prometheus/tsdb/docs/format); this package selects series and times, and
// turns chunks into columns.
package promblock

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/promlake/promlake/internal/format/series"
)

// Files of a block.
const (
	MetaFile     = "meta.json"
	DeletionMark = "deletion-mark.json" // of Thanos and Mimir: the block will be deleted
)

// ErrFormat reports bytes that are not a block of a version that upstream's TSDB reads.
var ErrFormat = errors.New("not a Prometheus block")

// Meta is the meta.json of a block, with the part that Thanos and Mimir add.
type Meta struct {
	tsdb.BlockMeta
	Thanos struct {
		Labels     map[string]string `json:"labels"` // external labels
		Downsample struct {
			Resolution int64 `json:"resolution"` // ms; 0: samples as they were scraped
		} `json:"downsample"`
		Files []MetaEntry `json:"files"`
	} `json:"thanos"`
}

// MetaEntry is a file of a block, as meta.json lists it.
type MetaEntry struct {
	Path  string `json:"rel_path"`   // from the directory of the block, with slashes
	Bytes int64  `json:"size_bytes"` // 0: unknown, as that of meta.json itself
}

// ReadMeta decodes a meta.json. Errors: ErrFormat.
func ReadMeta(b []byte) (Meta, error) {
	var m Meta
	if err := json.Unmarshal(b, &m); err != nil {
		return Meta{}, fmt.Errorf("%w: decode %s: %w", ErrFormat, MetaFile, err)
	}
	switch {
	case m.Version != 1:
		return Meta{}, fmt.Errorf("%w: %s has version %d, want 1", ErrFormat, MetaFile, m.Version)
	case m.ULID == (ulid.ULID{}):
		return Meta{}, fmt.Errorf("%w: %s has no ulid", ErrFormat, MetaFile)
	case m.MinTime >= m.MaxTime && m.Stats.NumSamples > 0:
		return Meta{}, fmt.Errorf("%w: %s of %s: minTime %d is not below maxTime %d", ErrFormat, MetaFile, m.ULID, m.MinTime, m.MaxTime)
	}
	return m, nil
}

// External returns the external labels by name, without those that begin with two underscores,
// which Thanos and Mimir use for themselves.
func (m *Meta) External() []series.Label {
	var out []series.Label
	for _, name := range slices.Sorted(maps.Keys(m.Thanos.Labels)) {
		if v := m.Thanos.Labels[name]; v != "" && !strings.HasPrefix(name, "__") {
			out = append(out, series.Label{Name: name, Value: v})
		}
	}
	return out
}

// Skip returns why a block is not to be read, or "": samples of downsampled blocks are aggregates,
// and those of a block that compaction emptied are in another one.
func (m *Meta) Skip() string {
	switch {
	case m.Thanos.Downsample.Resolution > 0:
		return fmt.Sprintf("is downsampled to %d ms", m.Thanos.Downsample.Resolution)
	case m.Compaction.Deletable:
		return "is marked deletable by compaction"
	}
	return ""
}

// Found is a block in a directory.
type Found struct {
	Dir     string
	Meta    Meta
	Skipped string // why the block is not to be read, or ""
	Bytes   int64  // of all files
}

// Find returns the blocks of a directory, which is a block or has blocks below it, by their ULIDs.
// Other files and directories, such as a write-ahead log, are ignored. Errors: ErrFormat.
func Find(dir string) ([]Found, error) {
	if _, err := os.Stat(filepath.Join(dir, MetaFile)); err == nil {
		f, err := look(dir)
		return []Found{f}, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("find blocks: %w", err)
	}
	var out []Found
	for _, e := range entries {
		if !IsBlockName(e.Name()) || !e.IsDir() {
			continue
		}
		f, err := look(filepath.Join(dir, e.Name()))
		if errors.Is(err, os.ErrNotExist) { // upstream ignores a block without meta.json, too
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// IsBlockName reports whether a directory of this name is a block: ULIDs name blocks.
func IsBlockName(name string) bool {
	_, err := ulid.ParseStrict(name)
	return err == nil
}

// look reads what Find returns of a block.
func look(dir string) (f Found, err error) {
	b, err := os.ReadFile(filepath.Join(dir, MetaFile))
	if err != nil {
		return f, fmt.Errorf("find blocks: %w", err)
	}
	if f.Meta, err = ReadMeta(b); err != nil {
		return f, fmt.Errorf("block %s: %w", dir, err)
	}
	f.Dir, f.Skipped = dir, f.Meta.Skip()
	if _, err := os.Stat(filepath.Join(dir, DeletionMark)); err == nil {
		f.Skipped = "is marked for deletion"
	}
	err = filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			f.Bytes += info.Size()
		}
		return err
	})
	if err != nil {
		return f, fmt.Errorf("find blocks: %w", err)
	}
	return f, nil
}
