package sql

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestDivide: the slices of a statement have its rows, in another process, whatever was deleted
// since. A statement that is not made row by row has none.
func TestDivide(t *testing.T) {
	store := laketest.NewDir(t)
	l := laketest.New(t, store, anywhere)
	laketest.WriteMixture(l, tenant.Default, laketest.PushRows())
	from, upto := "'"+moment(laketest.Now().Add(-3*time.Hour).UnixMilli())+"'", "'"+moment(laketest.Now().UnixMilli())+"'"
	between := " ts BETWEEN " + from + " AND " + upto
	call := "promql('rate(m1[5m])', " + from + ", " + upto + ", '47s')"
	type planned struct {
		text   string
		want   []string
		slices []query.Statement
	}
	var all []planned
	for _, tc := range []string{
		"FROM " + call,
		"SELECT * FROM " + call + " p WHERE NOT isnan(p.value) AND ts < now() AND p.value > 0.01",
		"SELECT labels['job'] AS job, epoch_ms(ts), value * 2, -Value, CASE WHEN value > 1 THEN 'high' END AS c FROM " + strings.ToUpper(call[:6]) + call[6:],
		"FROM promql('m1 + m1 @ end()', " + from + ", " + upto + ", '1m')",
		"SELECT ts, -value FROM (SELECT * EXCLUDE (metric) FROM " + call + ")",
		"SELECT * FROM samples",
		"SELECT value, value, s.* FROM (SELECT value, labels FROM samples) s(value, labels)",
		"SELECT * FROM samples WHERE metric = 'm1' AND" + between,
		"SELECT labels, ts, value + 0.1 FROM main.samples s WHERE s.metric LIKE 'm%' AND labels['job'] IN ('a', 'b') AND value > 1 AND ts <= now()",
		"SELECT s.ts, value FROM samples AS s WHERE metric IN ('m1', 'm2')",
		"SELECT ts, value FROM samples WHERE labels['job'] IS NOT NULL AND ts >= current_timestamp - INTERVAL 100 YEAR",
	} {
		s, err := l.Slices(t.Context(), request.Question{Statement: &query.Statement{Text: tc}}, 5)
		require.NoError(t, err, tc)
		require.Empty(t, s.Undivided, tc)
		require.Len(t, s.Slices, 5, tc)
		p := planned{text: tc, want: l.Rows(tc)}
		require.NotEmpty(t, p.want, tc)
		for i, slice := range s.Slices {
			require.True(t, i == 0 || slice.From > s.Slices[i-1].Upto, tc)
			pin, err := json.Marshal(slice.Snapshot)
			require.NoError(t, err)
			p.slices = append(p.slices, query.Statement{Text: slice.SQL, Snapshot: pin})
		}
		all = append(all, p)
	}
	l.Delete(tenant.Default, []*labels.Matcher{laketest.Equal("__name__", "m1")}, 0, laketest.Now().Add(time.Hour).UnixMilli())
	require.Empty(t, l.Rows("FROM samples WHERE metric = 'm1'"))
	other := laketest.New(t, store, laketest.PushAll)
	for _, p := range all {
		var rows []string
		for _, s := range p.slices {
			rows = append(rows, other.RowsOf(s)...)
		}
		slices.Sort(rows)
		slices.Sort(p.want)
		require.Equal(t, p.want, rows, p.text)
	}
	l = laketest.New(t, laketest.NewDir(t), anywhere)
	laketest.WriteMixture(l, tenant.Default, laketest.PushRows())
	for _, text := range []string{
		"SELECT count(*) FROM samples", "SELECT DISTINCT metric FROM samples", "SELECT value FROM samples LIMIT 1", "SELECT * FROM samples USING SAMPLE 5", "FROM samples TABLESAMPLE 10%", "FROM samples, samples s",
		"SELECT value FROM samples ORDER BY value", "SELECT -epoch(ts) AS ts FROM samples ORDER BY ts", "SELECT * REPLACE (-epoch(ts) AS ts) FROM samples ORDER BY ts",
		"SELECT random() FROM samples", "SELECT current_date FROM samples", "SELECT now() FROM samples", "FROM samples ORDER BY ts", "FROM samples WHERE ts > today()", "SELECT value * 1e-1 FROM samples", "SELECT sum(value) OVER () FROM samples", "SELECT (SELECT 1) FROM samples",
		"SELECT user FROM samples", "SELECT a FROM samples s(a)", "FROM series", "FROM stored_samples", "FROM promlake_metric('m1', NULL, NULL)", "WITH s AS (FROM samples) FROM s", "SELECT 1", "SHOW TABLES", "DESCRIBE samples", "SUMMARIZE samples", "FROM range(5)",
		"SELECT prom_rate(ts, value, '1m') OVER (PARTITION BY labels ORDER BY ts) FROM samples", "SELECT sum(value) FROM " + call, "FROM samples UNION ALL FROM samples", "EXPLAIN FROM samples",
		"SELECT value FROM samples QUALIFY row_number() OVER () < 2", "SELECT metric FROM samples GROUP BY ALL", "SELECT ts FROM samples WHERE metric = 'm1' OR labels['job'] = 'a'",
		"FROM samples WHERE metric = 'nothing' AND ts < '1980-01-01'", "FROM promql('topk(1, sum by (x) (m1))', " + from + ", " + upto + ", '1m')", "FROM " + call + " WITH ORDINALITY",
	} {
		s, err := l.Slices(t.Context(), request.Question{Statement: &query.Statement{Text: text}}, 5)
		if err != nil {
			require.ErrorContains(t, l.SQL(t.Context(), query.Statement{Text: text, Format: "json"}, &laketest.Result{}), err.Error(), text)
			continue
		}
		require.NotEmpty(t, s.Undivided, text)
		require.Empty(t, s.Slices, text)
	}
	small := laketest.New(t, l.Store, query.Settings{DivideWindows: -1})
	s, err := small.Slices(t.Context(), request.Question{Statement: &query.Statement{Text: "FROM samples"}}, 5)
	require.NoError(t, err)
	require.Equal(t, "the statement reads at most --query.divide-bytes, or few windows of blocks", s.Undivided)
}
