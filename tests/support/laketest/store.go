package laketest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// Dir is a store over a directory without the durability that tests do not need.
type Dir struct {
	Path  string
	Ahead time.Duration // of its clock
}

// NewDir returns a store over a temporary directory of the test.
func NewDir(t testing.TB) *Dir { return &Dir{Path: t.TempDir()} }

// LocalPath returns the path of the file that holds an object.
func (s *Dir) LocalPath(key string) string { return filepath.Join(s.Path, filepath.FromSlash(key)) }

// Get implements objstore.Store.
func (s *Dir) Get(_ context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	f, err := os.Open(s.LocalPath(key))
	if err != nil {
		return nil, objstore.Object{}, fmt.Errorf("%w: %w", objstore.ErrNotFound, err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, objstore.Object{}, errors.Join(err, f.Close())
	}
	obj := objstore.Object{Key: key, Size: info.Size()}
	if offset < 0 {
		offset = max(0, obj.Size+offset)
	}
	if length < 0 {
		length = obj.Size
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, offset, length), f}, obj, nil
}

// Put implements objstore.Store. It replaces what is there, whatever the condition.
func (s *Dir) Put(_ context.Context, key string, body io.ReadSeeker, _ objstore.Condition) (string, error) {
	b, err := io.ReadAll(body)
	if err != nil {
		return "", err
	}
	path := s.LocalPath(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), os.WriteFile(path, b, 0o644)
}

// modified is the time in a segment's key, so that tests order segments by it.
func modified(k string) (t time.Time) {
	if seg, err := key.ParseSegment(k); err == nil {
		t = ulid.Time(seg.ID.Time())
	}
	return t
}

// Now implements objstore.Store.
func (s *Dir) Now(context.Context) (time.Time, error) { return Now().Add(s.Ahead), nil }

// List implements objstore.Store.
func (s *Dir) List(_ context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		var objs []objstore.Object
		err := filepath.WalkDir(s.LocalPath(prefix[:strings.LastIndexByte(prefix, '/')+1]), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			k := filepath.ToSlash(path[len(s.Path)+1:])
			if !strings.HasPrefix(k, prefix) || k <= startAfter {
				return nil
			}
			info, err := d.Info()
			if err == nil {
				objs = append(objs, objstore.Object{Key: k, Size: info.Size(), Modified: modified(k)})
			}
			return err
		})
		if err != nil {
			yield(objstore.Object{}, err)
			return
		}
		slices.SortFunc(objs, func(a, b objstore.Object) int { return strings.Compare(a.Key, b.Key) })
		for _, o := range objs {
			if !yield(o, nil) {
				return
			}
		}
	}
}

// ListFolders implements objstore.Store.
func (s *Dir) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return memstore.Folders(prefix, s.List(ctx, prefix, ""))
}

// Delete implements objstore.Store.
func (s *Dir) Delete(_ context.Context, key string) error { return os.Remove(s.LocalPath(key)) }

// Remote hides that a store is local, and counts reads but those of manifests.
type Remote struct {
	objstore.Store
	Gets atomic.Int64
}

// Get implements objstore.Store.
func (s *Remote) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if !strings.HasSuffix(key, "/manifest.json") {
		s.Gets.Add(1)
	}
	return s.Store.Get(ctx, key, offset, length)
}

// Put stores an object.
func Put(t testing.TB, s objstore.Store, key string, body []byte) {
	t.Helper()
	_, err := s.Put(t.Context(), key, bytes.NewReader(body), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
}
