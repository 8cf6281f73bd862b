package ingest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/ingest/group"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/memstore"
)

func TestPace(t *testing.T) {
	files, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	memory := memstore.New(memstore.Settings{})
	for _, tc := range []struct {
		name     string
		interval time.Duration
		store    objstore.Store
		want     group.Pace
	}{
		{"a directory", 0, files, group.Pace{Wait: minWait, Gap: 0, MaxSamples: 50_000}},
		{"another store", 0, memory, group.Pace{Wait: RemoteFlushInterval, Gap: RemoteFlushInterval, MaxSamples: 50_000}},
		{"set", 3 * time.Second, files, group.Pace{Wait: 3 * time.Second, Gap: 3 * time.Second, MaxSamples: 50_000}},
		{"set short", time.Millisecond, memory, group.Pace{Wait: minWait, Gap: time.Millisecond, MaxSamples: 50_000}},
	} {
		set := DefaultSettings()
		set.FlushInterval = tc.interval
		require.Equal(t, tc.want, set.pace(tc.store), tc.name)
	}
}
