package query_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/inventory"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestLake: the description has all live objects, and the deletions that readers still apply.
func TestLake(t *testing.T) {
	l := laketest.New(t, laketest.NewDir(t), query.Settings{})
	empty, err := l.Lake(t.Context(), true)
	require.NoError(t, err)
	require.Empty(t, empty.Columns.Rows)
	require.Zero(t, empty.Bytes)
	require.Empty(t, empty.Levels)

	laketest.WriteMixture(l, tenant.Default, laketest.RandomRows(rand.New(rand.NewPCG(13, 14))))
	laketest.DeleteAll(l)
	plain, err := l.Lake(t.Context(), false)
	require.NoError(t, err)
	require.Nil(t, plain.Columns)
	got, err := l.Lake(t.Context(), true)
	require.NoError(t, err)
	snap, err := catalog.Take(t.Context(), l.Store, tenant.Default, key.MinTime, key.MaxTime)
	require.NoError(t, err)

	require.Equal(t, snap.Manifest.Generation, got.Generation)
	var objects, inWindows int
	var bytes, samples, ofWindows int64
	for _, x := range got.Levels {
		objects, bytes, samples = objects+x.Objects, bytes+x.Bytes, samples+x.Samples
	}
	last := int64(math.MinInt64)
	for _, w := range got.Windows {
		inWindows, ofWindows = inWindows+w.Objects, ofWindows+w.Bytes
		require.LessOrEqual(t, last, w.Start)
		require.Less(t, w.Start, w.End)
		last = w.Start
	}
	require.Equal(t, "segment", got.Levels[0].Level)
	require.Greater(t, len(got.Levels), 1)
	require.Equal(t, len(snap.Segments)+len(snap.Blocks), objects)
	require.Equal(t, objects, inWindows)
	require.Equal(t, got.Bytes, bytes)
	require.Equal(t, got.Bytes, ofWindows)
	var want, wantSamples int64
	for _, b := range snap.Blocks {
		want, wantSamples = want+b.Bytes, wantSamples+b.Samples
	}
	for _, s := range snap.Segments {
		want += s.Size
	}
	require.Equal(t, want, got.Bytes)
	require.Equal(t, wantSamples, samples)
	require.Zero(t, got.DollarsPerMonth, "a directory has no price")
	require.InEpsilon(t, float64(want)/(1<<30)*0.023, inventory.Of(snap).DollarsPerMonth, 1e-9)

	// The times are those of samples, within the windows.
	require.Zero(t, plain.Last)
	require.Less(t, got.First, got.Last)
	require.GreaterOrEqual(t, got.First, got.Windows[0].Start)
	for _, b := range snap.Blocks {
		if b.MinT <= b.MaxT {
			require.LessOrEqual(t, got.First, b.MinT)
			require.GreaterOrEqual(t, got.Last, b.MaxT)
		}
	}

	// The columns are all that the blocks consist of.
	require.Equal(t, min(len(snap.Blocks), 64), got.Columns.Blocks)
	require.Equal(t, wantSamples, got.Columns.Samples)
	var ofColumns int64
	names := map[string]bool{}
	for _, c := range got.Columns.Rows {
		ofColumns += c.Bytes
		names[c.File+"."+c.Name] = true
		require.InDelta(t, float64(c.Bytes)/float64(wantSamples), c.BytesPerSample, 1e-9)
	}
	require.Equal(t, got.Columns.Bytes, ofColumns)
	for _, name := range []string{"samples.ts", "samples.v_int", "samples.v_div", "samples.metric", "series."} {
		require.Contains(t, names, name)
	}

	require.Len(t, got.Deletions, len(snap.Manifest.Tombstones))
	require.NotEmpty(t, got.Deletions)
	applied := 0
	for _, d := range got.Deletions {
		require.Regexp(t, `^\{.+\}$`, d.Selector)
		require.LessOrEqual(t, d.Start, d.End)
		applied += d.Objects
	}
	require.Positive(t, applied)
}
