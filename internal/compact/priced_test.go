package compact

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/memqueue"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestRequestsThatArePriced counts the requests of a merge and of a tick that `promlake cost`
// prices by constants. A tick over a tenant that writes lists its segments; the tenants are listed
// rarely.
func TestRequestsThatArePriced(t *testing.T) {
	m := cost.Figures()
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	merge := func(from, at string) map[memstore.Op]int {
		for i := range 8 {
			l.now = clock(from).Add(time.Duration(i) * 10 * time.Minute)
			l.write("t", []segment.Row{{Labels: labels.FromStrings("__name__", "m"), Floats: []segment.Float{{T: l.now.UnixMilli(), V: 1}}}})
		}
		l.at(at)
		jobs := plan.Jobs(s.Settings().Policy, l.now, l.snapshot("t"))
		require.Len(t, jobs, 1)
		return l.requests(func() {
			r, err := s.Work(t.Context(), encoded(t, "t", jobs[0]))
			require.NoError(t, err)
			require.Equal(t, Done, r.Outcome, "%v", r.Err)
		})
	}
	merge("0:10", "2:15") // the first commit of a tenant puts one object more
	asked := merge("2:20", "4:15")
	require.InDelta(t, m.CompactJobLists.Value, asked[memstore.List], 0)
	require.InDelta(t, m.CompactJobHeads.Value, asked[memstore.Now], 0)
	require.InDelta(t, m.CompactJobPuts.Value, asked[memstore.Put], 0)

	tick := func(at string) map[memstore.Op]int {
		l.at(at)
		return l.requests(func() {
			_, err := s.Dispatch(t.Context(), memqueue.New(memqueue.Settings{Now: l.clock}))
			require.NoError(t, err)
		})
	}
	tick("4:16") // collects garbage
	asked = tick("4:17")
	require.InDelta(t, m.TickHeads.Value, asked[memstore.Now], 0)
}
