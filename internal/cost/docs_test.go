package cost_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/cost"
)

// TestDocumentation holds the tables of docs/cost.md against the model, to a dollar.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/cost.md")
	require.NoError(t, err)
	series := []float64{1e5, 1e6, 1e7}
	load := func(n float64) cost.Load {
		l := cost.DefaultLoad()
		l.Series, l.Senders = n, int(n/1e5)
		return l
	}
	modes := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([\\d,]+) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$").FindAllStringSubmatch(string(text), -1)
	require.Len(t, modes, 2*len(cost.Modes))
	for _, row := range modes {
		for i, n := range series {
			l := load(n)
			l.Mode, l.SamplesPerSend = cost.Mode(row[1]), number(t, row[2])
			require.InDelta(t, estimate(t, l).Dollars(), number(t, row[3+i]), 0.6, "%s, %s a request, %g series", row[1], row[2], n)
		}
	}
	p, m := lists(t, "us-east-1")
	amp := regexp.MustCompile(`(?m)^\| Amazon Managed Prometheus \| – \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`).FindStringSubmatch(string(text))
	require.NotNil(t, amp)
	for i, n := range series {
		require.InDelta(t, cost.AMP(load(n), p, m).Dollars(), number(t, amp[1+i]), 0.6)
	}
	b := estimate(t, load(1e6))
	for _, c := range cost.Components {
		row := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(string(c)) + ` \| ([\d.]+) \|`).FindStringSubmatch(string(text))
		if c == cost.Servers {
			require.Nil(t, row)
			continue
		}
		require.NotNil(t, row, c)
		require.InDelta(t, b.Of(c), number(t, row[1]), 0.006, c)
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.NewReplacer(",", "", "*", "").Replace(text), 64)
	require.NoError(t, err)
	return n
}
