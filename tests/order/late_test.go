package order

import (
	"bytes"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

// lateArrival: a put that was repeated, because its answer was late, takes effect once more, after
// the segment was merged and deleted. What overwrote its value counts for good.
func lateArrival(t *testing.T, l *lake) {
	l.deletionDelay = 30 * time.Second
	right, begin := time.Duration(0), time.Now().Add(-3*time.Hour)
	s := l.writer(&right)
	l.write(s, begin, 1)
	k := l.store.Keys()[0]
	r, _, err := l.store.Get(t.Context(), k, 0, -1)
	require.NoError(t, err)
	put, err := io.ReadAll(r)
	require.NoError(t, err)
	l.write(s, begin, 2)
	collected := func() bool { return !slices.Contains(l.store.Keys(), k) }
	for deadline := time.Now().Add(time.Hour); !collected() && time.Now().Before(deadline); time.Sleep(time.Minute) {
		l.compact(0)
	}
	require.True(t, collected(), "the segment is merged and deleted")
	_, err = l.store.Put(t.Context(), k, bytes.NewReader(put), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	for range 90 {
		require.Equal(t, map[int64]float64{begin.UnixMilli(): 2}, l.values())
		time.Sleep(time.Minute)
		l.compact(0)
	}
	require.True(t, collected(), "what came back is deleted")
}
