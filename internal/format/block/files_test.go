package block_test

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
)

// memFiles keeps the files of a block in memory and holds the writer to the protocol: no name
// twice, and nothing after meta.json.
type memFiles struct {
	t      testing.TB
	closed map[string][]byte
	open   map[string]bool
}

func newMemFiles(t testing.TB) *memFiles {
	return &memFiles{t: t, closed: map[string][]byte{}, open: map[string]bool{}}
}

type memFile struct {
	bytes.Buffer
	files *memFiles
	name  string
}

// Create implements block.Files.
func (m *memFiles) Create(name string) (io.WriteCloser, error) {
	require.NotContains(m.t, m.closed, name)
	require.NotContains(m.t, m.open, name)
	require.NotContains(m.t, m.closed, block.MetaFile, "%s is created after %s", name, block.MetaFile)
	if name == block.MetaFile {
		require.Empty(m.t, m.open, "files are open when %s begins", name)
	}
	m.open[name] = true
	return &memFile{files: m, name: name}, nil
}

func (f *memFile) Close() error {
	require.True(f.files.t, f.files.open[f.name], "%s is closed twice", f.name)
	delete(f.files.open, f.name)
	f.files.closed[f.name] = f.Bytes()
	return nil
}

// Open implements block.Source.
func (m *memFiles) Open(name string) (io.ReaderAt, int64, error) {
	b, ok := m.closed[name]
	if !ok {
		return nil, 0, os.ErrNotExist
	}
	return bytes.NewReader(b), int64(len(b)), nil
}

func (m *memFiles) names() []string { return slices.Sorted(maps.Keys(m.closed)) }

// save writes the files to a directory of the test and returns it.
func (m *memFiles) save(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range m.closed {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o644))
	}
	return dir
}
