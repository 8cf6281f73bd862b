package query

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/objstore"
)

// slowStore answers a Get when told to: each asker takes one answer from next.
type slowStore struct {
	objstore.Store // nil: nothing else is called
	asked          int
	next           chan answer
}

type answer struct {
	body string
	size int64
	err  error
}

func (s *slowStore) Get(ctx context.Context, key string, _, _ int64) (io.ReadCloser, objstore.Object, error) {
	s.asked++
	select {
	case a := <-s.next:
		return io.NopCloser(strings.NewReader(a.body)), objstore.Object{Key: key, Size: a.size}, a.err
	case <-ctx.Done():
		return nil, objstore.Object{}, ctx.Err()
	}
}

// outcome is what one acquire gave: the file's bytes or an error.
type outcome struct {
	body string
	err  error
}

func acquireAsync(ctx context.Context, c *diskCache) chan outcome {
	out := make(chan outcome, 1)
	go func() {
		path, release, err := c.acquire(ctx, "k")
		if err != nil {
			out <- outcome{err: err}
			return
		}
		defer release()
		b, err := os.ReadFile(path)
		out <- outcome{string(b), err}
	}()
	return out
}

func TestDownloadsAreShared(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name    string
		giveUp  bool // the first asker's context ends while the object is on its way
		answers []answer
		want    []outcome // of the first asker, and of the others
		asked   int
	}{
		{"success", false, []answer{{"data", 4, nil}}, []outcome{{"data", nil}, {"data", nil}}, 1},
		{"the first gives up", true, []answer{{"data", 4, nil}}, []outcome{{"", context.Canceled}, {"data", nil}}, 2},
		{"failure", false, []answer{{"", 0, boom}}, []outcome{{"", boom}, {"", boom}}, 1},
		{"torn", false, []answer{{"dat", 4, nil}}, []outcome{{"", io.ErrUnexpectedEOF}, {"", io.ErrUnexpectedEOF}}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				store := &slowStore{next: make(chan answer)}
				work := &workdir{configured: dir}
				c := newDiskCache(store, work, 1, newMetrics(nil))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				first := acquireAsync(ctx, c)
				synctest.Wait()
				others := []chan outcome{acquireAsync(t.Context(), c), acquireAsync(t.Context(), c)}
				synctest.Wait()
				require.Equal(t, 1, store.asked)
				if tc.giveUp {
					cancel()
					synctest.Wait()
				}
				for _, a := range tc.answers {
					store.next <- a
				}
				check := func(want outcome, got outcome) {
					require.Equal(t, want.body, got.body)
					require.ErrorIs(t, got.err, want.err)
				}
				check(tc.want[0], <-first)
				for _, o := range others {
					check(tc.want[1], <-o)
				}
				require.Equal(t, tc.asked, store.asked)
				files, err := os.ReadDir(dir + "/segments")
				require.NoError(t, err)
				require.LessOrEqual(t, len(files), 1, "nothing torn stays behind")
				require.NoError(t, work.close())
			})
		})
	}
}
