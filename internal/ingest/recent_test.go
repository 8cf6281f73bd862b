package ingest

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/recenttest"
)

// TestKeepsStoredSegments sends random requests in every mode: what is kept of each segment is what
// its object holds, and stays so while later requests use the memory of earlier ones.
func TestKeepsStoredSegments(t *testing.T) {
	for _, mode := range modes {
		t.Run("mode="+string(mode), func(t *testing.T) {
			kept := recent.New(64<<20, nil, func() time.Time { return time.UnixMilli(someTime) })
			set := quick()
			set.Mode = mode
			l := newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store { return s }, Keep(kept))
			rng := rand.New(rand.NewPCG(1, 9))
			for range 60 {
				require.Less(t, l.send(protocols[rng.IntN(2)], randomItems(rng)).Code, 500)
				l.tick()
			}
			keys := l.store.Keys()
			require.NotEmpty(t, keys)
			for _, k := range keys {
				r, o, err := l.store.Get(t.Context(), k, 0, -1)
				require.NoError(t, err)
				file, err := io.ReadAll(r)
				require.NoError(t, err)
				require.NoError(t, r.Close())
				recenttest.Equal(t, file, kept.Get(k, o.Size))
				footer, err := segment.ReadInfo(bytes.NewReader(file), o.Size)
				require.NoError(t, err)
				own, known := kept.TakeFooter(k, o.Size)
				if require.Equal(t, len(footer.Metadata) == 0, known, "metadata changes when it is encoded"); known {
					require.Equal(t, footer, own)
				}
				_, known = kept.TakeFooter(k, o.Size)
				require.False(t, known, "it was taken")
			}
		})
	}
}

// TestKeepsNothingUncertain: nothing is kept of a put that failed, whether or not its object is
// there. The request comes again, and its segment is kept.
func TestKeepsNothingUncertain(t *testing.T) {
	for _, when := range []memstore.When{memstore.Before, memstore.After} {
		reg := prometheus.NewRegistry()
		kept := recent.New(64<<20, reg, func() time.Time { return time.UnixMilli(someTime) })
		set := quick()
		set.Mode = Direct
		l := newLakeThrough(t, set, func() time.Time { return time.UnixMilli(someTime) }, func(s objstore.Store) objstore.Store { return s }, Keep(kept))
		l.faults.Add(memstore.On(memstore.Put), memstore.Fault{Err: errDown, When: when})
		require.Equal(t, http.StatusInternalServerError, l.send(protocolV1, []item{gauge("up", at(1, 1))}).Code)
		bytes := func() float64 {
			all, err := reg.Gather()
			require.NoError(t, err)
			return all[0].GetMetric()[0].GetGauge().GetValue()
		}
		require.Zero(t, bytes())
		l.ok(protocolV1, []item{gauge("up", at(1, 1))})
		require.NotZero(t, bytes())
	}
}
