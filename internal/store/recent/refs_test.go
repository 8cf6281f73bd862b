package recent

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
)

// TestRefs: the runs of random refs from one on have these refs, each once, and neighbours take the
// memory of two.
func TestRefs(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		var x refs
		var want []series.Ref
		ref := series.Ref(r.IntN(3))
		for range r.IntN(100) {
			x, want = x.add(ref), append(want, ref)
			ref++
			if r.IntN(3) == 0 {
				ref += series.Ref(r.IntN(3))
			}
		}
		for from := range ref + 2 {
			var got []series.Ref
			for first, last := range x.runs(from) {
				for ref := first; ref <= last; ref++ {
					got = append(got, ref)
				}
			}
			after := want
			for len(after) > 0 && after[0] < from {
				after = after[1:]
			}
			require.ElementsMatch(t, after, got)
			require.IsIncreasing(t, append([]series.Ref{0}, shifted(got)...))
			require.Equal(t, len(after), x.count(from, len(after)+1))
			require.GreaterOrEqual(t, x.count(from, len(after)/2), len(after)/2)
		}
	}
	var x refs
	for ref := range series.Ref(500) {
		x = x.add(100 + ref)
	}
	require.Len(t, x, 2)
}

// shifted returns refs that are greater by 1.
func shifted(refs []series.Ref) (out []series.Ref) {
	for _, ref := range refs {
		out = append(out, ref+1)
	}
	return out
}
