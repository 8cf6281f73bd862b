package sql

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSQLKeepsSamples removes the sample file of a block: a statement that has read it has its
// samples nevertheless, also for other conditions on time and values, unless the samples of the scan
// are too many to keep.
func TestSQLKeepsSamples(t *testing.T) {
	store := laketest.NewDir(t)
	l := laketest.New(t, store, query.Settings{})
	var rows []segment.Row
	for i := range 20 {
		r := segment.Row{Labels: laketest.Metric(fmt.Sprintf("m%d", i/18), "i", fmt.Sprint(i))}
		for j := range 3000 {
			r.Floats = append(r.Floats, segment.Float{T: int64(j) * 1000, V: float64(i*j) / 7})
		}
		rows = append(rows, r)
	}
	b := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)[0]
	small := laketest.New(t, store, query.Settings{IndexCacheBytes: 64 << 20})
	const few, cut = "SELECT labels['i'], ts, value FROM samples WHERE metric = 'm1'", " AND ts BETWEEN make_timestamptz(500000000) AND make_timestamptz(2400000000) AND value > 100"
	const many = "SELECT labels['i'], ts, value FROM samples"
	want, less, all := l.Rows(few), small.Rows(few+cut), l.Rows(many)
	require.Len(t, want, 2*3000)
	require.Len(t, all, 20*3000)
	require.Equal(t, all, small.Rows(many))
	require.NoError(t, store.Delete(t.Context(), b.Key(tenant.Default).File(block.SamplesFile(0))))
	require.Equal(t, want, l.Rows(few))
	require.Equal(t, less, l.Rows(few+cut))
	require.Equal(t, all, l.Rows(many))
	require.Equal(t, less, small.Rows(few+cut), "most of them were in the range")
	require.ErrorIs(t, small.SQL(t.Context(), query.Statement{Text: many, Format: "csv"}, &laketest.Result{}), objstore.ErrNotFound, "they exceed its share")
}

// TestSQLNow: a statement has one now(), by which DuckDB's plan says what is read and by which the
// rows are chosen.
func TestSQLNow(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	row := segment.Row{Labels: laketest.Metric("m")}
	for at := time.Now().UnixMilli(); len(row.Floats) < 300_000; at++ { // each millisecond of five minutes
		row.Floats = append(row.Floats, segment.Float{T: at})
	}
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, []segment.Row{row})
	for range 5 {
		require.Equal(t, []string{"0"}, l.Rows("SELECT epoch_ms(now()) - epoch_ms(max(ts)) FROM samples WHERE ts <= now()"))
	}
}

// TestSQLOfObjectsThatAreGone: a statement whose snapshot has a block that was replaced and deleted
// is answered from the next snapshot.
func TestSQLOfObjectsThatAreGone(t *testing.T) {
	store := laketest.NewDir(t)
	l := laketest.New(t, store, query.Settings{})
	rows := []segment.Row{{Labels: laketest.Metric("up", "job", "a"), Floats: []segment.Float{{T: laketest.Now().UnixMilli() - minute, V: 1}, {T: laketest.Now().UnixMilli() - 1, V: 2}}}}
	old := l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)
	require.Len(t, l.Rows("FROM blocks"), len(old), "the snapshot is kept")
	other := laketest.New(t, store, query.Settings{})
	other.Seq = 1000
	other.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L2h}, rows)
	other.Commit(tenant.Default, func(c catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		c.Blocks = slices.DeleteFunc(c.Blocks, func(b catalog.Block) bool {
			return slices.ContainsFunc(old, func(o catalog.Block) bool { return o.ID == b.ID })
		})
		return c, nil
	})
	for _, b := range old {
		require.NoError(t, store.Delete(t.Context(), b.Key(tenant.Default).File(block.SamplesFile(0))))
	}
	require.Equal(t, []string{"a | 2"}, l.Rows("SELECT labels['job'], count(*) FROM samples WHERE ts < now() AND metric = $1 GROUP BY ALL", "up"))
}
