package remotewrite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

func TestExtend(t *testing.T) {
	set := func(names ...string) (out []series.Label) {
		for _, n := range names {
			out = append(out, series.Label{Name: n[:1], Value: n[1:]})
		}
		return out
	}
	for name, tc := range map[string]struct{ lset, labels, want []series.Label }{
		"none":         {set("a1"), nil, set("a1")},
		"to nothing":   {nil, set("a1", "b2"), set("a1", "b2")},
		"one":          {set("a1", "c3"), set("b2"), set("a1", "c3", "b2")},
		"two":          {set("b2"), set("a1", "c3"), set("b2", "a1", "c3")},
		"replaces":     {set("a1", "b2"), set("b3"), set("a1", "b3")},
		"a duplicate":  {set("a1", "b2", "b3"), set("b4"), set("a1", "b4")},
		"out of order": {set("c3", "b2"), set("d4"), set("c3", "b2", "d4")},
	} {
		require.Equal(t, tc.want, remotewrite.Extend(tc.lset, tc.labels), name)
	}
}

func TestCheckExtra(t *testing.T) {
	l := remotewrite.DefaultLimits()
	l.MaxLabelNames, l.MaxLabelValueBytes = 2, 3
	got, err := l.CheckExtra([]series.Label{{Name: "b", Value: "1"}, {Name: "a"}, {Name: "b", Value: "2"}})
	require.NoError(t, err)
	require.Equal(t, []series.Label{{Name: "a"}, {Name: "b", Value: "2"}}, got, "sorted, and of equal names the last")
	for want, bad := range map[string][]series.Label{
		"more label names than the limit of 2": {{Name: "a"}, {Name: "b"}, {Name: "c"}},
		"longer than the limit of 3 bytes":     {{Name: "a", Value: "1234"}},
		"invalid label name":                   {{Name: "a\xff", Value: "1"}},
		"is not valid UTF-8":                   {{Name: "a", Value: "\xff"}},
	} {
		_, err := l.CheckExtra(bad)
		require.ErrorContains(t, err, want)
	}
}
