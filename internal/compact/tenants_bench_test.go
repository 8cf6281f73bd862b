package compact

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
)

// BenchmarkCycleOfManyTenants is a cycle over a directory in which every tenant has one segment
// that is too young to merge.
func BenchmarkCycleOfManyTenants(b *testing.B) {
	for _, n := range []int{2500, 10000} {
		b.Run(fmt.Sprintf("tenants=%d", n), func(b *testing.B) {
			now, dir := time.Now(), b.TempDir()
			for i := range n {
				s := key.Segment{Tenant: fmt.Sprintf("tenant-%05d", i), Window: key.WindowOf(now.UnixMilli())}
				require.NoError(b, s.ID.SetTime(ulid.Timestamp(now)))
				path := filepath.Join(dir, s.String())
				require.NoError(b, os.MkdirAll(filepath.Dir(path), 0o777))
				require.NoError(b, os.WriteFile(path, []byte("not read"), 0o666))
			}
			store, err := filestore.New(dir)
			require.NoError(b, err)
			for b.Loop() {
				s, err := New(Settings{}, store, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), func() time.Time { return now })
				require.NoError(b, err)
				r, err := s.Cycle(b.Context())
				require.NoError(b, err)
				require.Equal(b, n, r.State.Tenants)
			}
		})
	}
}
