package index_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/index"
)

type sized int64

func (s sized) Bytes() int64 { return int64(s) }

func TestCache(t *testing.T) {
	c := index.NewCache(100, 0, time.Now)
	loads := 0
	get := func(key string, n int64) bool {
		v, hit, err := index.Get(t.Context(), c, key, func() (sized, error) { loads++; return sized(n), nil })
		require.NoError(t, err)
		require.Equal(t, n, v.Bytes())
		return hit
	}
	require.False(t, get("a", 40))
	require.True(t, get("a", 40))
	require.False(t, get("b", 40))
	require.True(t, get("a", 40)) // b is now the least recently used
	require.False(t, get("c", 40))
	require.True(t, get("a", 40))
	require.False(t, get("b", 40))
	require.False(t, get("large", 101))
	require.False(t, get("large", 101), "what does not fit is not kept")
	require.True(t, get("b", 40), "and pushes nothing out")
	require.LessOrEqual(t, c.Bytes(), int64(100))
	require.Equal(t, 6, loads)
	failed := errors.New("failed")
	for range 2 {
		_, _, err := index.Get(t.Context(), c, "broken", func() (sized, error) { loads++; return 0, failed })
		require.ErrorIs(t, err, failed)
	}
	require.Equal(t, 8, loads, "an error is not kept")
	require.True(t, get("a", 40))
	c.Remove("a", "absent")
	require.Equal(t, int64(41), c.Bytes(), "b and its key")
	require.True(t, get("b", 40))
	require.False(t, get("a", 40), "it was removed")
}

// TestCacheLoadsOnce: concurrent callers wait for the one that loads.
func TestCacheLoadsOnce(t *testing.T) {
	c := index.NewCache(100, 0, time.Now)
	loading, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	get := func(ctx context.Context, load func() (sized, error)) {
		v, _, err := index.Get(ctx, c, "k", load)
		if err != nil || v != 7 {
			t.Error(v, err)
		}
	}
	wg.Go(func() {
		get(t.Context(), func() (sized, error) { close(loading); <-goOn; return 7, nil })
	})
	<-loading
	for range 5 {
		wg.Go(func() {
			get(t.Context(), func() (sized, error) { return 0, errors.New("a second load") })
		})
	}
	gaveUp, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err := index.Get(gaveUp, c, "k", func() (sized, error) { return 0, nil })
	require.ErrorIs(t, err, context.Canceled)
	close(goOn)
	wg.Wait()
}

// TestCacheForgetsWhatIsIdle: what nobody asks for any more goes when something else comes, and what
// is asked for stays.
func TestCacheForgetsWhatIsIdle(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	c := index.NewCache(1000, time.Minute, func() time.Time { return now })
	add := func(key string) {
		_, _, err := index.Get(t.Context(), c, key, func() (sized, error) { return 10, nil })
		require.NoError(t, err)
	}
	add("asked for")
	add("listed")
	add("idle")
	for range 4 {
		now = now.Add(30 * time.Second)
		add("asked for")
		require.Empty(t, index.Held(c, 1, func(int) string { return "listed" }, func(int, sized) {}))
	}
	require.True(t, c.Has("asked for"))
	require.Equal(t, int64(30+len("asked for")+len("listed")+len("idle")), c.Bytes(), "nothing has come since")
	add("new")
	require.Equal(t, int64(30+len("asked for")+len("listed")+len("new")), c.Bytes())
	require.False(t, c.Has("idle"))
}

// TestCacheRemovesAllOfAnObject removes the table of an object, and its parts.
func TestCacheRemovesAllOfAnObject(t *testing.T) {
	c := index.NewCache(1000, 0, time.Now)
	gone := []string{"a/b.parquet", index.PartKey("samples", "a/b.parquet", ""), index.PartKey("samples", "a/b.parquet", "\nof a row") + "s", index.PartKey("frame", "a/b.parquet", "7")}
	stay := []string{"a/b.parquet.x", index.PartKey("samples", "a/b", ""), index.PartKey("frame", "c", "a/b.parquet")}
	for _, key := range append(gone, stay...) {
		_, _, err := index.Get(t.Context(), c, key, func() (sized, error) { return 1, nil })
		require.NoError(t, err)
	}
	c.Remove()
	c.Remove("a/b.parquet", "absent")
	for _, key := range gone {
		require.False(t, c.Has(key), key)
	}
	for _, key := range stay {
		require.True(t, c.Has(key), key)
	}
}
