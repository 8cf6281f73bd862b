package source

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/fetch"
)

// TestFetchBytes: bytes that several reads of a file take count once.
func TestFetchBytes(t *testing.T) {
	var f Fetch
	f.Add([]Parts{{Key: "a", Spans: [][2]int64{{10, 5}, {20, 10}}}, {Key: "b", Spans: [][2]int64{{0, 7}}}})
	require.EqualValues(t, 22, f.Bytes())
	f.Add([]Parts{{Key: "a", Spans: [][2]int64{{12, 20}, {22, 2}, {100, 1}}}, {Key: "b", Spans: [][2]int64{{0, 7}}}})
	require.EqualValues(t, 22+1+7, f.Bytes())
}

// TestPartsAdd: in a remote store, ranges of a row group are taken with what little lies between
// them; in a directory, and between row groups, they are not.
func TestPartsAdd(t *testing.T) {
	const gap = fetch.DefaultGapBytes
	groups := [][][2]int64{{{0, 10}, {10 + gap, 5}, {16 + 2*gap, 1}}, {{20 + 2*gap, 1}}}
	for _, tc := range []struct {
		gap  int64
		want [][2]int64
	}{
		{0, [][2]int64{{0, 10}, {10 + gap, 5}, {16 + 2*gap, 1}, {20 + 2*gap, 1}}},
		{gap, [][2]int64{{0, 15 + gap}, {16 + 2*gap, 1}, {20 + 2*gap, 1}}},
	} {
		p := Parts{gap: tc.gap}
		for _, g := range groups {
			p.Add(g)
		}
		require.Equal(t, tc.want, p.Spans)
	}
}
