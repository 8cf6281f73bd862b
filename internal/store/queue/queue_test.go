package queue_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/queue"
)

func TestChunks(t *testing.T) {
	for bytes, want := range map[int]int{0: 1, 1: 1, 64 << 10: 1, 64<<10 + 1: 2, 1 << 20: 16} {
		require.Equal(t, want, queue.Chunks(bytes), bytes)
	}
}

func TestBatches(t *testing.T) {
	const most = queue.MaxMessageBytes
	for _, tc := range []struct {
		name  string
		sizes []int
		want  [][]int
	}{
		{"none", nil, nil},
		{"one", []int{1}, [][]int{{1}}},
		{"the largest", []int{most, most}, [][]int{{most}, {most}}},
		{"just fit", []int{most - 1, 1, 1}, [][]int{{most - 1, 1}, {1}}},
		{"many", []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}, [][]int{{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {2}}},
	} {
		var ms []queue.Message
		for _, n := range tc.sizes {
			ms = append(ms, queue.Message{Body: strings.Repeat("x", n)})
		}
		var got [][]int
		for _, b := range queue.Batches(ms) {
			var sizes []int
			for _, m := range b {
				sizes = append(sizes, len(m.Body))
			}
			got = append(got, sizes)
		}
		require.Equal(t, tc.want, got, tc.name)
	}
}

func TestCheck(t *testing.T) {
	require.NoError(t, queue.Message{Body: strings.Repeat("x", queue.MaxMessageBytes)}.Check())
	require.ErrorIs(t, queue.Message{Body: strings.Repeat("x", queue.MaxMessageBytes+1)}.Check(), queue.ErrTooLarge)
	require.Error(t, queue.Message{}.Check())
}
