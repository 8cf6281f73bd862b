package appender

import (
	"testing"
	"unsafe"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"
)

// TestSizes: what there is of each series, and of each sample that waits, is small.
func TestSizes(t *testing.T) {
	require.LessOrEqual(t, unsafe.Sizeof(state{}), uintptr(48))
	require.LessOrEqual(t, unsafe.Sizeof(Sample{}), uintptr(sampleBytes))
}

// TestHistogramsAreForgotten: the last histogram of a series takes memory until a float follows it,
// or the series is forgotten.
func TestHistogramsAreForgotten(t *testing.T) {
	a := New(func(*Transaction) error { return nil })
	add := func(name string, at int64, h *histogram.Histogram) {
		app := a.AppenderV2(t.Context())
		_, err := app.Append(0, labels.FromStrings("__name__", name), 0, at, 1, h, nil, storage.AOptions{})
		require.NoError(t, err)
		require.NoError(t, app.Commit())
	}
	for at := range int64(3) {
		add("a", at, tsdbutil.GenerateTestHistogram(at))
		add("b", at, tsdbutil.GenerateTestHistogram(at))
	}
	require.Len(t, a.order.hists, 2)
	add("a", 3, nil)
	require.Len(t, a.order.hists, 1)
	add("a", 3*forgetAfter, nil)
	require.Empty(t, a.order.hists)
	require.Equal(t, 1, seriesIn(&a.order.series))
}

// TestRareIsShared: neighbours that began at the same time, and results of rules, share what few
// samples have.
func TestRareIsShared(t *testing.T) {
	var got []Sample
	a := New(func(tx *Transaction) error { got = tx.Samples; return nil })
	app := a.AppenderV2(t.Context())
	for i, x := range []struct {
		start   int64
		ordered bool
	}{{0, false}, {5, false}, {5, false}, {6, false}, {0, true}, {6, true}, {0, true}} {
		_, err := app.Append(0, labels.FromStrings("__name__", string(rune('a'+i))), x.start, 10, 1, nil, nil, storage.AOptions{RejectOutOfOrder: x.ordered})
		require.NoError(t, err)
	}
	require.NoError(t, app.Commit())
	require.Nil(t, got[0].Rare)
	require.Equal(t, &Rare{ST: 5}, got[1].Rare)
	require.Same(t, got[1].Rare, got[2].Rare)
	require.Equal(t, &Rare{ST: 6}, got[3].Rare)
	require.Equal(t, &Rare{inOrder: true}, got[4].Rare)
	require.Equal(t, &Rare{ST: 6, inOrder: true}, got[5].Rare)
	require.Same(t, got[4].Rare, got[6].Rare)
}
