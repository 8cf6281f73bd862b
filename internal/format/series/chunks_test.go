package series_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
)

// TestManySets adds more label sets than a chunk of the table has, one of them larger than a chunk,
// and reads them through views from before and after, also in the memory of an earlier content.
func TestManySets(t *testing.T) {
	const n, large, labels = 30_000, 20_000, 70_000
	set := func(i int) (lset []series.Label) {
		lset = append(lset, series.Label{Name: "__name__", Value: fmt.Sprintf("metric_%d", i%7)})
		k := i % 5 // some have no other label
		if i == large {
			k = labels
		}
		for j := range k {
			lset = append(lset, series.Label{Name: fmt.Sprintf("label_%06d", j), Value: fmt.Sprint(i)})
		}
		if k > 0 {
			return lset
		}
		return []series.Label{{Name: "__name__", Value: fmt.Sprintf("metric_%d", i)}}
	}
	check := func(v *series.View, i int) {
		var got []series.Label
		got = append(got, series.Label{Name: "__name__", Value: v.Metrics[v.Metric(series.Ref(i))]})
		for _, p := range v.Pairs(series.Ref(i)) {
			got = append(got, series.Label{Name: v.Names[p.Name], Value: v.Values[p.Name][p.Value]})
		}
		id, _ := series.IDOf(got, nil)
		require.Equal(t, set(i), got, "set %d", i)
		require.Equal(t, id, v.ID(series.Ref(i)), "set %d", i)
	}
	table := series.NewTable(1)
	for round := range uint64(2) {
		var views []series.View
		for i := range n {
			ref, err := table.Intern(set(i))
			require.NoError(t, err)
			require.Equal(t, series.Ref(i), ref)
			table.Alias(series.Key{Lo: uint64(i) + 1}, ref)
			if i%1000 == 0 {
				views = append(views, table.View())
			}
		}
		for _, v := range append(views, table.View()) {
			for i := 0; i < v.Len(); i += 997 {
				check(&v, i)
			}
			check(&v, v.Len()-1)
		}
		for i := range n {
			ref, ok := table.Lookup(series.Key{Lo: uint64(i) + 1})
			assert.True(t, ok && ref == series.Ref(i), "set %d", i)
		}
		table.Reset(round)
		assert.Zero(t, table.Len())
	}
}
