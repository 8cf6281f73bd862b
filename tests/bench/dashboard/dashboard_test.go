package dashboard

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/capture"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/table"
)

// TestPanels: each panel is a valid query of metrics that the hosts have, and has its own request.
func TestPanels(t *testing.T) {
	c, err := capture.Open("")
	require.NoError(t, err)
	hosts, err := fleet.New(c, 5)
	require.NoError(t, err)
	names := map[string]bool{}
	for i := range hosts.PerHost() {
		names[hosts.Labels(i).Get("__name__")] = true
	}
	v := &visit{hosts: hosts, begin: time.Unix(1_700_000_000, 0), rounds: 4}
	seen := map[string]bool{}
	for i := range panels {
		path := v.panel(i, time.Hour)
		seen[path] = true
		q, err := url.ParseQuery(strings.TrimPrefix(path, "/api/v1/query_range?"))
		require.NoError(t, err)
		require.Equal(t, []string{"1699996460", "1700000060", "15"}, []string{q.Get("start"), q.Get("end"), q.Get("step")})
		e, err := parser.NewParser(parser.Options{}).ParseExpr(q.Get("query"))
		require.NoError(t, err)
		parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok {
				require.True(t, names[s.Name], s.Name)
			}
			return nil
		})
	}
	require.Len(t, seen, panels)
}

func TestTables(t *testing.T) {
	results := []result{
		{Store: "a directory", Range: time.Hour, Opened: requests{40, 1}, Refreshed: requests{3, 1}},
		{Store: "a directory", Range: 3 * time.Hour, Opened: requests{60, 2}, Refreshed: requests{4, 2}},
		{Store: "a bucket", Range: time.Hour, Opened: requests{5, 1}, Refreshed: requests{0, 1}},
	}
	require.Equal(t, [][]string{
		{"a directory, 1h", "40", "1", "3", "1"}, {"a directory, 3h", "60", "2", "4", "2"}, {"a bucket, 1h", "5", "1", "0", "1"},
	}, rows(results)[1:])
	require.Equal(t, []table.Comparison{
		{Name: "a dashboard of 30 panels over a directory, 5 ranges: opened", Unit: unit, Promlake: 103},
		{Name: "a dashboard of 30 panels over a directory, 5 ranges: refreshed", Unit: unit, Promlake: 10},
		{Name: "a dashboard of 30 panels over a bucket, 5 ranges: opened", Unit: unit, Promlake: 6},
		{Name: "a dashboard of 30 panels over a bucket, 5 ranges: refreshed", Unit: unit, Promlake: 1},
	}, comparisons(results, 5))
	_, err := (&Flags{Span: time.Minute}).measure(t.Context())
	require.ErrorContains(t, err, "span of 1m0s")
}
