package promsql_test

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// TestListsBesideTheCollector: while the garbage collector marks, it follows what a pointer that Go
// writes replaces. In C's memory, that may be the address of a list that was freed.
func TestListsBesideTheCollector(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	done := make(chan struct{})
	var collector sync.WaitGroup
	collector.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	})
	b := promsql.NewBudget(0)
	defer b.Close()
	for range 10_000 {
		lists := make([][]float64, 16)
		for i := range lists {
			lists[i] = make([]float64, 512)
		}
		l, err := promsql.NewLists(lists, nil, b)
		require.NoError(t, err)
		present, err := l.Quantile(0.5, make([]float64, 512))
		require.NoError(t, err)
		require.True(t, present)
		l.Close()
	}
	close(done)
	collector.Wait()
}
