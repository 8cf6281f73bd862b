package remotewrite_test

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// TestExpectedSamplesShareMemory: samples whose number is known get memory for all of them at once,
// which later batches use, but never two at a time. A batch of few samples among them keeps that
// memory while it waits. The garbage collector may take it away at any time.
func TestExpectedSamplesShareMemory(t *testing.T) {
	g := remotewrite.NewGeneration(1)
	collect := func(n, added int) *remotewrite.Batch {
		b, err := remotewrite.Collect(g, remotewritetest.Rules(), remotewrite.NewRoom(1<<20, 1<<30, math.MaxInt64, nil), func(c *remotewrite.Collector) error {
			c.Expect(n)
			for i := range added {
				c.Float(1, float64(i))
				known, err := c.Series(c.Key(fmt.Append(nil, i)))
				if err != nil || known {
					require.NoError(t, err)
					continue
				}
				require.NoError(t, c.Learn([]series.Label{{Name: "__name__", Value: "m"}, {Name: "i", Value: fmt.Sprint(i)}}))
			}
			return nil
		})
		require.NoError(t, err)
		require.Len(t, b.Floats, added)
		for i := range b.Floats {
			require.EqualValues(t, i, b.Floats[i].V)
		}
		return b
	}
	const many = 20_000
	first := collect(many, many)
	require.GreaterOrEqual(t, cap(first.Floats), many)
	require.Less(t, cap(first.Floats), 2*many)
	shared := false
	for range 1000 {
		a := collect(many, 10)
		at := unsafe.SliceData(a.Floats)
		b := collect(many, 20)
		require.NotSame(t, at, unsafe.SliceData(b.Floats))
		b.Release()
		a.Release()
		c := collect(many-1, many-1)
		if shared = unsafe.SliceData(c.Floats) == at; shared {
			break
		}
		c.Release()
	}
	require.True(t, shared)
	require.Len(t, first.Floats, many)
	for i := range first.Floats {
		require.EqualValues(t, i, first.Floats[i].V)
	}
}
