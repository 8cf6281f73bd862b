package compact

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

// counted is a directory that counts its listings by where they look.
type counted struct {
	*filestore.Store
	folders, all, tenant atomic.Int64
}

func (c *counted) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	c.folders.Add(1)
	return c.Store.ListFolders(ctx, prefix)
}

func (c *counted) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	if strings.Count(prefix, "/") < 2 {
		c.all.Add(1)
	} else {
		c.tenant.Add(1)
	}
	return c.Store.List(ctx, prefix, startAfter)
}

// TestCycleListsTheTenantsOnce: a listing of the folder of all tenants costs a directory as many
// steps as there are tenants, so a cycle makes one of them. What else it asks is within one tenant,
// and as much for each.
func TestCycleListsTheTenantsOnce(t *testing.T) {
	for _, tenants := range []int{1, 40} {
		files, err := filestore.New(t.TempDir())
		require.NoError(t, err)
		store, now := &counted{Store: files}, time.Now()
		for i := range tenants {
			s := key.Segment{Tenant: fmt.Sprintf("t%d", i), Window: key.WindowOf(now.UnixMilli())}
			require.NoError(t, s.ID.SetTime(ulid.Timestamp(now)))
			_, err := store.Put(t.Context(), s.String(), strings.NewReader("not read"), objstore.Condition{})
			require.NoError(t, err)
		}
		s, err := New(Settings{}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), func() time.Time { return now })
		require.NoError(t, err)
		r, err := s.Cycle(t.Context())
		require.NoError(t, err)
		require.Equal(t, tenants, r.State.Tenants)
		require.EqualValues(t, 1, store.folders.Load())
		require.EqualValues(t, 0, store.all.Load())
		require.EqualValues(t, 4*tenants, store.tenant.Load(), "segments, manifests, blocks, answers of each")
	}
}
