package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/promlake/promlake/internal/store/objstore"
)

func testIfAbsentRace(t *testing.T, s objstore.Store) {
	const writers = 16
	for round := range 5 {
		key := fmt.Sprintf("race/%d", round)
		var winner atomic.Pointer[string]
		var g errgroup.Group
		start := make(chan struct{})
		for w := range writers {
			g.Go(func() error {
				<-start
				value := "writer " + strconv.Itoa(w)
				_, err := s.Put(t.Context(), key, strings.NewReader(value), objstore.Condition{IfAbsent: true})
				switch {
				case errors.Is(err, objstore.ErrPrecondition):
					return nil
				case err != nil:
					return err
				case !winner.CompareAndSwap(nil, &value):
					return fmt.Errorf("%s and %s both won", *winner.Load(), value)
				}
				return nil
			})
		}
		close(start)
		require.NoError(t, g.Wait())
		require.NotNil(t, winner.Load(), "somebody must win")
		got, _ := get(t, s, key)
		assert.Equal(t, *winner.Load(), got)
	}
}

// testIfMatchCounter would lose an increment if two conditional Puts of one version both succeeded.
func testIfMatchCounter(t *testing.T, s objstore.Store) {
	const writers, each = 6, 15
	put(t, s, "counter", "0")
	increment := func() error {
		for {
			b, o, err := read(t.Context(), s, "counter", 0, -1)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(b))
			if err != nil {
				return err
			}
			_, err = s.Put(t.Context(), "counter", strings.NewReader(strconv.Itoa(n+1)), objstore.Condition{IfMatch: o.ETag})
			if !errors.Is(err, objstore.ErrPrecondition) {
				return err
			}
		}
	}
	var g errgroup.Group
	for range writers {
		g.Go(func() error {
			for range each {
				if err := increment(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	got, _ := get(t, s, "counter")
	assert.Equal(t, strconv.Itoa(writers*each), got)
}

// testAtomicOverwrites checks that readers never see a part of an object or a mixture of two.
func testAtomicOverwrites(t *testing.T, s objstore.Store) {
	version := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i%26)}, 100_000+i*1000) }
	put(t, s, "k", string(version(0)))
	done := make(chan struct{})
	var readers errgroup.Group
	var once sync.Once
	stop := func() { once.Do(func() { close(done) }) }
	defer stop()
	for range 3 {
		readers.Go(func() error {
			for {
				select {
				case <-done:
					return nil
				default:
				}
				b, o, err := read(t.Context(), s, "k", 0, -1)
				if err != nil {
					return err
				}
				i := (len(b) - 100_000) / 1000
				if int64(len(b)) != o.Size || !bytes.Equal(b, version(i)) {
					return fmt.Errorf("%d bytes, %d announced, are no version of the object", len(b), o.Size)
				}
			}
		})
	}
	for i := range 40 {
		put(t, s, "k", string(version(i)))
	}
	stop()
	require.NoError(t, readers.Wait())
}

// testNeighbours writes and deletes adjacent keys concurrently: no write may affect another key.
func testNeighbours(t *testing.T, s objstore.Store) {
	put(t, s, "a/b/c/stays", "x")
	NeighbourChurn(t, s)
	assert.Equal(t, []string{"a/b/c/0", "a/b/c/1", "a/b/c/2", "a/b/c/3", "a/b/c/stays"}, list(t, s, "", ""))
}

// NeighbourChurn runs four goroutines that put, read and delete one key each, a/b/c/0 to a/b/c/3,
// and leave it in place. In a store of folders without other keys below a/, the folders are created
// and removed meanwhile.
func NeighbourChurn(t *testing.T, s objstore.Store) {
	t.Helper()
	const workers, rounds = 4, 25
	var g errgroup.Group
	for w := range workers {
		g.Go(func() error { return churn(t.Context(), s, fmt.Sprintf("a/b/c/%d", w), rounds) })
	}
	require.NoError(t, g.Wait())
}

func churn(ctx context.Context, s objstore.Store, key string, rounds int) error {
	for i := range rounds {
		if i > 0 {
			if err := s.Delete(ctx, key); err != nil {
				return err
			}
		}
		if _, err := s.Put(ctx, key, strings.NewReader("x"), objstore.Condition{IfAbsent: i%2 == 0}); err != nil {
			return err
		}
		if _, _, err := read(ctx, s, key, 0, -1); err != nil {
			return err
		}
	}
	return nil
}
