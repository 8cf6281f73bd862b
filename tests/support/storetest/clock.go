package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

// testClock puts objects one after another. No object is older than a time that Now returned
// before, and Now is not far behind.
func testClock(t *testing.T, s objstore.Store) {
	last, err := s.Now(t.Context())
	require.NoError(t, err)
	for i := range 3 {
		k := fmt.Sprintf("clock/%d", i)
		put(t, s, k, "x")
		now, err := s.Now(t.Context())
		require.NoError(t, err)
		var listed time.Time
		for o, err := range s.List(t.Context(), k, "") {
			require.NoError(t, err)
			listed = o.Modified
		}
		r, o, err := s.Get(t.Context(), k, 0, -1)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		// Answers of S3 to Get have whole seconds; listings may be more precise.
		require.Equal(t, listed.Truncate(time.Second), o.Modified.Truncate(time.Second))
		require.False(t, listed.Before(last.Truncate(time.Second)), "put %s, after %s", listed, last)
		require.False(t, now.Add(objstore.ClockLag).Before(listed), "now %s, after %s", now, listed)
		last = now
	}
}
