package snapshot

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestPanicsOfReads: a panic while a bucket is listed or a manifest is read is an error of the
// read, and the next one succeeds.
func TestPanicsOfReads(t *testing.T) {
	for _, op := range []memstore.Op{memstore.List, memstore.Get} {
		broken := true
		store := memstore.New(memstore.Settings{Faults: func(c memstore.Call) memstore.Fault {
			if broken && c.Op == op {
				panic("a defect")
			}
			return memstore.Fault{}
		}})
		m := request.NewMetrics(nil, time.Now)
		c := New(Settings{}, store, source.New(source.Settings{}, store, &tempdir.WorkDir{}, nil, m), index.NewCache(1<<20, 0, time.Now), time.Now, m, slog.New(slog.DiscardHandler))
		read := func() error {
			_, err := c.Range(0, key.WindowMillis).Read(t.Context(), func(catalog.Snapshot) error { return nil })
			return err
		}
		require.ErrorIs(t, read(), telemetry.ErrPanic)
		broken = false
		require.NoError(t, read())
	}
}
