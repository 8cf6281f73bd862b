package weights_test

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/api/weights"
)

func TestCounter(t *testing.T) {
	var c weights.Counter
	require.Zero(t, c.Pairs())
	require.Empty(t, c.Labels())
	require.Empty(t, c.Values("job"))
	c.Add(labels.FromStrings("__name__", "a", "job", "x"), 10, 1, 5)
	c.Add(labels.FromStrings("__name__", "a", "job", "yy"), 20, 2, 7)
	c.Add(labels.FromStrings("__name__", "b"), 30, 3, 6)
	require.Equal(t, weights.Weight{Series: 3, Samples: 60, Bytes: 6, Last: 7}, c.Total)
	require.EqualValues(t, 4, c.Pairs())
	name := weights.Row{Name: "__name__", Values: 2, Length: 3, Weight: weights.Weight{Series: 3, Samples: 60, Bytes: 6, Last: 7}}
	job := weights.Row{Name: "job", Values: 2, Length: 3, Weight: weights.Weight{Series: 2, Samples: 30, Bytes: 3, Last: 7}}
	require.Equal(t, []weights.Row{name, job}, weights.Largest(c.Labels(), 9, weights.BySeries))
	require.Equal(t, []weights.Row{name}, weights.Largest(c.Labels(), 1, weights.ByValues), "equal numbers by name")
	got, ok := c.Label("job")
	require.True(t, ok)
	require.Equal(t, job, got)
	_, ok = c.Label("no")
	require.False(t, ok)
	value := func(name string, series, samples int64, bytes float64, last int64) weights.Row {
		return weights.Row{Name: name, Values: 1, Weight: weights.Weight{Series: series, Samples: samples, Bytes: bytes, Last: last}}
	}
	require.Equal(t, []weights.Row{value("a", 2, 30, 3, 7), value("b", 1, 30, 3, 6)}, weights.Largest(c.Values("__name__"), 9, weights.BySeries))
	require.Equal(t, []weights.Row{value("__name__=a", 2, 30, 3, 7), value("__name__=b", 1, 30, 3, 6), value("job=x", 1, 10, 1, 5), value("job=yy", 1, 20, 2, 7)},
		weights.Largest(c.PairRows(), 9, weights.BySeries))
	require.Equal(t, name, weights.Largest(c.Labels(), 9, weights.ByLength)[0])
}
