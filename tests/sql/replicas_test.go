package sql

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/tests/support/laketest"
)

// TestSQLReplicas: tables over replicas have the rows of tables over the samples that count, bit for
// bit, in every layout, and the tables of what is stored have each replica.
func TestSQLReplicas(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	stored, shown := laketest.Replicated(rng)
	stored[0].Exemplars = append(stored[0].Exemplars, laketest.Exemplar(laketest.Now().UnixMilli()-minute, 5, "same"))
	shown[0].Exemplars = append(shown[0].Exemplars, stored[0].Exemplars...)
	reference, each := laketest.New(t, laketest.NewDir(t), query.Settings{}), laketest.New(t, laketest.NewDir(t), query.Settings{})
	reference.Write(tenant.Default, shown)
	each.Write(tenant.Default, stored)
	at := func(before int64) string {
		return fmt.Sprintf("make_timestamptz(%d)", laketest.Now().UnixMicro()-before*1000)
	}
	statements := []string{
		"FROM samples", "FROM series", "FROM histograms", "FROM exemplars", "SELECT " + bucketColumns + " FROM rollup_5m", "SELECT " + bucketColumns + " FROM rollup_1h",
		"FROM series WHERE labels['cluster'] = 'x'", "FROM promlake_metric('m1', " + at(100*minute) + ", NULL)", "FROM promlake_metric('m3', NULL, NULL)",
		"FROM samples WHERE labels['__replica__'] = 'a'", "SELECT count(*) FROM samples WHERE labels['__replica__'] IS NULL", "FROM series WHERE labels['__replica__'] LIKE '%'",
		"SELECT metric, labels, prom_rate(ts, value, " + at(62*minute) + ", " + at(58*minute) + ") FROM samples WHERE metric <> 'm3' AND ts > " + at(62*minute) + " AND ts <= " + at(58*minute) + " GROUP BY ALL",
		"FROM promql('sum by (job) (rate(m1[5m]))', " + at(2*hour) + ", " + at(0) + ", '3m')",
	}
	for range laketest.Rounds(5) { // the choice near the ends of a range depends on samples outside of it
		from := rng.Int64N(200 * minute)
		condition := " WHERE ts > " + at(from) + " AND ts <= " + at(from-rng.Int64N(20*minute)) + laketest.Pick(rng.IntN(2) == 0, "", " AND metric <> 'm2'")
		statements = append(statements, "FROM samples"+condition, "FROM histograms"+condition, "SELECT "+bucketColumns+" FROM rollup_5m"+condition)
	}
	withRollups := func(l *laketest.Lake, tenantID string, rows []segment.Row, meta ...segment.Metadata) {
		l.WriteBlocks(tenantID, laketest.Shape{Level: key.L24h, GroupRows: 700, Rollups: true}, rows, meta...)
	}
	some, wanted := 0, map[string][]string{}
	for _, s := range statements {
		wanted[s] = reference.Rows(s)
	}
	for i, write := range []laketest.Writer{laketest.Layouts[0].Write, withRollups, laketest.Layouts[2].Write} {
		l := laketest.New(t, laketest.NewDir(t), query.Settings{HA: laketest.HA})
		write(l, tenant.Default, stored)
		for _, s := range statements {
			want := wanted[s]
			require.Equal(t, want, l.Rows(s), "layout %d: %s", i, s)
			some += len(want)
		}
		require.Equal(t, flat(stored), l.Rows("FROM stored_samples"), "layout %d", i)
		require.Equal(t, each.Rows("FROM series"), l.Rows("FROM stored_series"), "layout %d", i)
		require.Equal(t, each.Rows("FROM samples WHERE labels['__replica__'] = 'b' AND ts > "+at(hour)), l.Rows("FROM stored_samples WHERE labels['__replica__'] = 'b' AND ts > "+at(hour)))
	}
	require.Equal(t, reference.Rows("FROM samples"), reference.Rows("FROM stored_samples"), "without replicas, both are equal")
	require.Greater(t, some, 10_000)
}

// TestSQLReplicasAcrossWindows: which rows count in a range depends on segments of a window that the
// range does not touch, also in a scan that begins after rows were sent.
func TestSQLReplicasAcrossWindows(t *testing.T) {
	window := laketest.Now().Truncate(2 * time.Hour)
	var rows []segment.Row
	for i, first := range []int{-122, -125} {
		r := segment.Row{Labels: laketest.Metric("up", "__replica__", fmt.Sprint(i), "cluster", "x")}
		for sec := first; sec < 60; sec += 15 {
			r.Floats = append(r.Floats, segment.Float{T: window.UnixMilli() + int64(sec)*1000, V: float64(sec)})
		}
		rows = append(rows, r)
	}
	l := laketest.New(t, laketest.NewDir(t), query.Settings{HA: laketest.HA})
	l.Write(tenant.Default, rows)
	// The first replica has samples at -2 and 13, the second one at 10.
	const within = "value FROM samples WHERE ts > make_timestamptz($1) AND ts <= make_timestamptz($2)"
	from, to := window.Add(5*time.Second).UnixMicro(), window.Add(20*time.Second).UnixMicro()
	require.Equal(t, []string{"13.0"}, l.Rows("SELECT printed FROM (SELECT value::VARCHAR AS printed, "+within+")", from, to))
	var out laketest.Result
	text := fmt.Sprintf("SELECT repeat_row.column0 AS v FROM repeat_row(1.5, num_rows = 300000) UNION ALL SELECT value FROM samples WHERE ts > make_timestamptz(%d) AND ts <= make_timestamptz(%d)", from, to)
	require.NoError(t, l.SQL(t.Context(), query.Statement{Text: text, Format: "csv"}, &sent{&out}))
	require.Contains(t, out.String(), "\n13\n")
}

// sent is a result of which something was sent once it has a byte.
type sent struct{ *laketest.Result }

func (s *sent) Reset() bool { return s.Len() == 0 }

// TestSQLReplicasOfStoredBuckets: the stored row of a bucket that has samples of one replica alone is
// not taken, because which of them count depends on the other replica.
func TestSQLReplicasOfStoredBuckets(t *testing.T) {
	full := laketest.Now().Truncate(time.Hour).UnixMilli() - 2*hour
	shown := laketest.Metric("requests", "cluster", "x")
	var rows []segment.Row
	for i, first := range []int64{full - hour, full + 2000} {
		r := segment.Row{Labels: laketest.Metric("requests", "cluster", "x", "__replica__", fmt.Sprint(i))}
		for k := range int64(240) {
			r.Floats = append(r.Floats, segment.Float{T: first + k*15_000 - int64(1-i)*2000, V: float64(i*240+int(k)) - float64(2*i)})
		}
		rows = append(rows, r)
	}
	// The first replica ends 17 s before the full hour; its value 239 is there again 2 s before it.
	rows[0].Floats = append(rows[0].Floats, segment.Float{T: full - 2000, V: 239})
	reference, l := laketest.New(t, laketest.NewDir(t), query.Settings{}), laketest.New(t, laketest.NewDir(t), query.Settings{HA: laketest.HA})
	counted := laketest.Choose(laketest.HA.Rule(), shown, rows)
	require.Less(t, len(counted.Floats), len(rows[0].Floats)+len(rows[1].Floats), "a sample that looks like a reset is left out")
	reference.Write(tenant.Default, []segment.Row{counted})
	l.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h, Rollups: true}, rows)
	require.Equal(t, reference.Rows("FROM rollup_1h"), l.Rows("FROM rollup_1h"))
}
