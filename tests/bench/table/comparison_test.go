package table

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestComparisons(t *testing.T) {
	all := []Comparison{
		{Name: "a", Unit: "ms", Promlake: 1.234, Peer: 2.468, Wanted: Wanted{Ratio: 0.4}},
		{Name: "b", Unit: "MB", Promlake: 1234, Wanted: Wanted{Figure: 1200}},
		{Name: "c", Unit: "MB", Promlake: 300, Peer: 600, Wanted: Wanted{Figure: 300}},
		{Name: "d", Unit: "ms", Promlake: 3, Wanted: Wanted{Ratio: 1}},
		{Name: "e", Unit: "ms", Promlake: 3, Peer: 3},
	}
	require.Equal(t, [][]string{
		{"measured", "unit", "promlake", "victoria-metrics", "ratio", "wanted"},
		{"a", "ms", "1.23", "2.47", "0.50", "ratio ≤ 0.4, missed"},
		{"b", "MB", "1234", "–", "–", "≤ 1200 MB, missed"},
		{"c", "MB", "300", "600", "0.50", "≤ 300 MB"},
		{"d", "ms", "3", "–", "–", "ratio ≤ 1"},
		{"e", "ms", "3", "3", "1.00", ""},
	}, Comparisons(all))
	require.Equal(t, [][]string{{"measured", "unit", "promlake", "victoria-metrics", "ratio"}, {"e", "ms", "3", "3", "1.00"}}, Comparisons(all[4:]))
}

func TestGoal(t *testing.T) {
	for _, tc := range []struct {
		c     Comparison
		ratio float64
		known bool
	}{
		{Comparison{Peer: 4, Wanted: Wanted{Figure: 2}}, 0.5, true},
		{Comparison{Wanted: Wanted{Figure: 2}}, 0, false},
		{Comparison{Peer: 4, Wanted: Wanted{Ratio: 0.9}}, 0.9, true},
		{Comparison{Peer: 4}, 0, false},
	} {
		ratio, known := tc.c.Goal()
		require.Equal(t, tc.ratio, ratio)
		require.Equal(t, tc.known, known)
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Write(&b, [][]string{{"query", "ms"}, {`a=~"b|c"`, "1"}}))
	require.Equal(t, "| query     |  ms |\n| --------- | --: |\n| a=~\"b\\|c\" |   1 |\n", b.String())
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 12345678: "12,345,678"} {
		require.Equal(t, want, Count(n))
	}
}
