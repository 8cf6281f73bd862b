package fuzzpromql

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	perWorld     = 2000 // queries over the same data
	maxReports   = 20   // of all
	maxAlike     = 2    // of those that look alike
	maxUndecided = 0.02 // of the queries
	maxLimited   = 0.1  // of the queries
)

func TestDifferential(t *testing.T) {
	n, seed := setting(t, "PROMLAKE_FUZZPROMQL_QUERIES", 2000), setting(t, "PROMLAKE_FUZZPROMQL_SEED", 0)
	t.Logf("%d queries from seed %d", n, seed)
	sum := tally{alike: map[string]int{}}
	for first := seed; first < seed+n; {
		last := min(seed+n, (first/perWorld+1)*perWorld)
		t.Run(fmt.Sprintf("data-%d", first/perWorld), func(t *testing.T) {
			w := newWorld(t, first/perWorld, newData(first/perWorld))
			w.ask(t.Context(), first, last, &sum)
			w.count(t, &sum)
		})
		first = last
	}
	t.Logf("%d queries: %d differ, %d undecided, %d without memory, %d errors, %d without a value; %.0f subtrees, %.0f of them computed directly, and %.0f SQL statements, %.0f queries without any, %.0f from the head",
		sum.queries, sum.failed, sum.undecided, sum.limited, sum.errors, sum.empty, sum.pushed, sum.computed, sum.statements, sum.kept, sum.heads)
	if n >= 1000 {
		upstream, series, samples, median := sum.bounds()
		t.Logf("%d estimates: %.2f%% bound the samples that upstream reads, %.2f%% the series and %.2f%% the samples that Promlake reads; median of estimated to read samples %.2f",
			len(sum.estimates), 100*upstream, 100*series, 100*samples, median)
		for _, share := range []float64{upstream, series, samples} {
			require.GreaterOrEqual(t, share, 0.99)
		}
		require.LessOrEqual(t, median, 2.0)
	}
	for _, r := range sum.reports {
		t.Error(r)
	}
	require.Zero(t, sum.failed, "queries whose answers differ")
	if n >= 1000 {
		require.Less(t, float64(sum.undecided), maxUndecided*float64(n))
		require.Less(t, float64(sum.limited), maxLimited*float64(n))
		require.Less(t, sum.errors+sum.empty, int(n*6/10), "most queries have to have a value")
		require.Greater(t, sum.pushed, float64(n)/2, "subtrees that SQL evaluated")
		require.Greater(t, sum.computed, float64(n)/10, "subtrees that were computed directly")
		require.Greater(t, sum.heads, float64(n)/100, "queries from the head")
	}
}

// ask runs the queries of the seeds [first, last).
func (w *world) ask(ctx context.Context, first, last uint64, sum *tally) {
	var workers sync.WaitGroup
	seeds := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := range seeds {
				a := newAsk(seed)
				v, want := w.check(ctx, a)
				sum.add(v, want)
				if want.err == "" && !v.limited {
					if e, err := w.estimate(ctx, a, want); err != nil {
						sum.report("estimate", fmt.Sprintf("%v\n  estimate: %v", a, err))
					} else {
						sum.estimate(e)
					}
				}
				if v.difference != "" {
					small, d := w.minimal(ctx, a, v.difference)
					sum.report(kind(small.query, d), fmt.Sprintf("%v\n  differs: %s\n  smallest: %s\n  differs: %s\n  repeat with PROMLAKE_FUZZPROMQL_SEED=%d PROMLAKE_FUZZPROMQL_QUERIES=1",
						a, v.difference, small.query, d, seed))
				}
			}
		})
	}
	for seed := first; seed < last; seed++ {
		seeds <- seed
	}
	close(seeds)
	workers.Wait()
}

func setting(t *testing.T, name string, standard uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}
