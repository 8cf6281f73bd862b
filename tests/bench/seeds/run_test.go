package seeds

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/query"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
	"github.com/promlake/promlake/tests/support/servertest"
)

// TestMeasure measures a Promlake with little data: benchmarks of the same data load it once, and
// only rows that are wanted are left.
func TestMeasure(t *testing.T) {
	bin, err := servertest.Program("cmd/promlake", t.TempDir())
	require.NoError(t, err)
	f := Flags{Flags: server.Flags{ServerBin: bin, Only: []string{server.Promlake}}, Rounds: 1, Rows: []string{"lastpoint", "raw", "Billy"}}
	raw := TStorage(8, 20*time.Minute)
	for i := range raw.Questions {
		raw.Questions[i].Variants = raw.Questions[i].Variants[:2]
	}
	sensors, read := billy(4, 2)
	chosen := f.chosen([]benchmark{
		{name: "cpu", set: CPUOnly(8, 20*time.Minute)}, {name: "TStorage", set: raw, rounds: 1}, {name: "devops", set: Devops(101, 12)}, {name: "Billy", set: sensors, read: read},
	})
	require.Len(t, chosen, 3)
	r, err := f.measure(t.Context(), chosen)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, c := range r.Rows {
		require.False(t, names[c.Name+c.Unit], c.Name)
		names[c.Name+c.Unit] = true
		require.True(t, c.Promlake > 0 || c.Unit == "bytes per sample" || c.Unit == "bytes per series", c.Name)
	}
	for _, name := range []string{"lastpoint", "TStorage, one series raw", "TStorage, ten series of a host raw", allDays, sensors.Name + ": load"} {
		require.True(t, slices.ContainsFunc(r.Rows, func(c table.Comparison) bool { return c.Name == name }), name)
	}
	require.False(t, slices.ContainsFunc(r.Rows, func(c table.Comparison) bool { return c.Name == chosen[0].set.Name+": load" }))
	require.Len(t, r.Rates, 1+len(read))
	require.False(t, slices.ContainsFunc(chosen[0].set.Questions, func(q query.Question) bool { return q.Name != "lastpoint" }))
}
