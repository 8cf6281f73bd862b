package query_test

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
)

// dirStore is a store over a directory without the durability that tests do not need.
type dirStore struct {
	dir   string
	ahead time.Duration // of its clock
}

func newDirStore(t testing.TB) *dirStore { return &dirStore{dir: t.TempDir()} }

func (s *dirStore) LocalPath(key string) string { return filepath.Join(s.dir, filepath.FromSlash(key)) }

func (s *dirStore) Get(_ context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
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

func (s *dirStore) Put(_ context.Context, key string, body io.ReadSeeker, _ objstore.Condition) (string, error) {
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

func (s *dirStore) Now(context.Context) (time.Time, error) { return testNow().Add(s.ahead), nil }

func (s *dirStore) List(_ context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return func(yield func(objstore.Object, error) bool) {
		var objs []objstore.Object
		err := filepath.WalkDir(s.LocalPath(prefix[:strings.LastIndexByte(prefix, '/')+1]), func(path string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || d.IsDir() {
				return err
			}
			k := filepath.ToSlash(path[len(s.dir)+1:])
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

func (s *dirStore) Delete(_ context.Context, key string) error { return os.Remove(s.LocalPath(key)) }

// remoteStore hides that a store is local, and counts reads but those of manifests.
type remoteStore struct {
	objstore.Store
	gets atomic.Int64
}

func (s *remoteStore) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if !strings.HasSuffix(key, "/manifest.json") {
		s.gets.Add(1)
	}
	return s.Store.Get(ctx, key, offset, length)
}

func put(t testing.TB, s objstore.Store, key string, body []byte) {
	t.Helper()
	_, err := s.Put(t.Context(), key, bytes.NewReader(body), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
}
