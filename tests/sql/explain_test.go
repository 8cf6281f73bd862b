package sql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

var explainedCost = regexp.MustCompile(`cost \| (\d+) LIST and (\d+) GET requests, (\d+) bytes, \$(\d+\.\d+)`)

// TestSQLExplains: EXPLAIN shows for each scan what it reads, and the requests that the statement
// then sends to the store, and their price.
func TestSQLExplains(t *testing.T) {
	dir := laketest.NewDir(t)
	writeLake := laketest.New(t, dir, query.Settings{})
	writeLake.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, GroupRows: 3000, Rollups: true}, withHists(laketest.RollupRows()[:4]))
	laketest.RollupStates[2].Apply(writeLake)
	now := laketest.Now().UnixMicro()
	for _, tc := range []struct {
		text  string
		lists int
		want  string // of the scan
		gets  bool
	}{
		{"SELECT count(*) FROM samples WHERE labels['i'] = '3'", 1, `reads 1 series of \d segments and \d blocks, \d+ of \d+ row groups, \d+ bytes`, true},
		{fmt.Sprintf("SELECT max(value) FROM promlake_metric('m', make_timestamptz(%d), NULL)", now-3*60*minute*1000), 1, `reads 5 series of`, true},
		{"SELECT metric, max(max) FROM rollup_1h GROUP BY ALL", 1, `\d row groups, \d+ bytes; about \d+ rows of rollups, \d+ computed from samples`, true},
		{"SELECT count(*) FROM histograms", 1, `row groups`, true},
		{"SELECT count(*) FROM exemplars", 1, `row groups`, false},
		{"FROM blocks", 1, `of \d segments and \d blocks`, false},
		{fmt.Sprintf("SELECT count(*) FROM promql('sum(rate(m[5m]))', make_timestamptz(%d), make_timestamptz(%d), '5m')", now-60*60*minute*1000, now), 1, `promql sum\(rate\(m\[5m\]\)\) from \S+ to \S+ every 5m0s`, true},
	} {
		remote := &laketest.Remote{Store: dir}
		l := laketest.New(t, remote, query.Settings{})
		explained := strings.Join(l.Rows("EXPLAIN "+tc.text), "\n")
		require.Regexp(t, tc.want, explained, tc.text)
		cost := explainedCost.FindStringSubmatch(explained)
		require.NotNil(t, cost, explained)
		require.Equal(t, strconv.Itoa(tc.lists), cost[1])
		gets, err := strconv.Atoi(cost[2])
		require.NoError(t, err)
		dollars, err := strconv.ParseFloat(cost[4], 64)
		require.NoError(t, err)
		require.InDelta(t, float64(tc.lists)*5e-6+float64(gets)*4e-7, dollars, 1e-8, "prices of us-east-1")
		require.Equal(t, tc.gets, gets > 1, explained)
		before := remote.Gets.Load()
		l.Rows(tc.text)
		took := remote.Gets.Load() - before // but that for the manifest, which is known
		require.InDelta(t, gets-1, took, 2, "%s: threads may read neighbours in a file by two requests", tc.text)
		cost = explainedCost.FindStringSubmatch(strings.Join(l.Rows("EXPLAIN "+tc.text), "\n"))
		require.Equal(t, "1", cost[2], "%s: everything is cached", tc.text)
	}
	huge := "EXPLAIN SELECT count(*) FROM samples WHERE starts_with(labels['i'], '" + strings.Repeat("x", 300_000) + "')"
	require.Regexp(t, `reads [1-9]\d* series of`, strings.Join(writeLake.Rows(huge), "\n"), "a pattern too large to compile it selects nothing ahead")
	none := strings.Join(laketest.New(t, &laketest.Remote{Store: dir}, query.Settings{}).Rows("EXPLAIN SELECT 1"), "\n")
	require.Equal(t, []string{"0", "0", "0"}, explainedCost.FindStringSubmatch(none)[1:4], "it has no scan")
	local := explainedCost.FindStringSubmatch(strings.Join(writeLake.Rows("EXPLAIN ANALYZE SELECT count(*) FROM samples"), "\n"))
	require.Equal(t, []string{"0", "0"}, local[1:3], "the store is a directory")
	require.NotEqual(t, "0", local[3])
}
