package block

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPagesSkip: the units of a metric that are not tried have the layout of the last one that was,
// as long as they are no runs; the first unit of a metric is tried.
func TestPagesSkip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const n = 2000
	pages := func(skip int, metrics []uint32, kinds ...string) (out []int) {
		t.Helper()
		p := newTestPages(t, false)
		p.skip = skip
		var vals []int64
		var ends []int
		for _, k := range kinds {
			vals = append(vals, intKinds[k](r, n)...)
			ends = append(ends, len(vals))
		}
		chunk, err := p.lay(vals, ends, metrics)
		require.NoError(t, err)
		var got []int64
		for _, p := range chunk.Pages {
			out = append(out, p.Values/n)
			got = append(got, decodePage(t, p, chunk.Dict)...)
		}
		require.Equal(t, vals, got)
		return out
	}
	require.Equal(t, []int{1, 1, 1}, pages(tryAll, nil, "walk", "few values", "walk"))
	require.Equal(t, []int{3}, pages(partSkip, nil, "walk", "few values", "walk"))
	require.Equal(t, []int{1, 1, 1}, pages(partSkip, nil, "walk", "constant", "few values"))
	require.Equal(t, []int{1, 2}, pages(partSkip, []uint32{1, 2, 2}, "walk", "few values", "walk"))
	require.Equal(t, []int{2, 1}, pages(1, nil, "walk", "few values", "few values"))
}
