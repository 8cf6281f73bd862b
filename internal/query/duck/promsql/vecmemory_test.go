package promsql_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// budgeted are calls with a place for more of the spec, with the bytes per series and step that
// they need at least where all series are in one group; 0 if they need no more for more series.
var budgeted = map[string]float64{
	"prom_sum(v, '%s')": 0, "prom_avg(v, '%s')": 0, "prom_min(v, '%s')": 0, "prom_max(v, '%s')": 0, "prom_count(v, '%s')": 0, "prom_group(v, '%s')": 0,
	"prom_stddev(v, '%s')": 0, "prom_stdvar(v, '%s')": 0, "prom_absent(v, 'n=200 %s')": 0, "prom_scalar(v, 'n=200 %s')": 0,
	"prom_sum(i, v, '%s')": 8, "prom_quantile(i, v, 'phi=0.5 %s')": 8,
	"prom_topk(i, v, 'k=3 n=200 %s')": 8, "prom_bottomk(i, v, 'k=3 n=200 %s')": 8, "prom_limitk(i, v, 'k=3 n=200 %s')": 0,
	"prom_histogram_quantile([0.5::DOUBLE], i::DOUBLE, v, '%s')": 8,
}

const (
	memorySeries = 4000
	memorySteps  = 200
)

// memoryTable has memorySeries series of memorySteps values.
func memoryTable(t *testing.T, db *duck.DB) {
	vecExec(t, db, fmt.Sprintf("CREATE TABLE m AS SELECT i::UINTEGER AS i, list_transform(range(%d), lambda k: ((i * 7 + k) %% 1000)::DOUBLE) AS v FROM range(%d) t(i)", memorySteps, memorySeries))
}

func drain(t *testing.T, db *duck.DB, sql string) error {
	return db.Each(t.Context(), sql, nil, []string{duck.BigInt}, func(int, []duck.Vector) error { return nil })
}

func TestBudgets(t *testing.T) {
	db := openVec(t, 2)
	memoryTable(t, db)
	for call, bytes := range budgeted {
		for groups, sql := range map[int]string{
			1:            "SELECT count(x)::BIGINT FROM (SELECT " + call + " AS x FROM m)",
			memorySeries: "SELECT count(x)::BIGINT FROM (SELECT i, " + call + " AS x FROM m GROUP BY i)",
		} {
			b := promsql.NewBudget(0)
			require.NoError(t, drain(t, db, fmt.Sprintf(sql, fmt.Sprintf("budget=%d", b.ID()))), sql)
			peak := b.Peak()
			require.Zero(t, b.Used(), sql)
			require.NoError(t, b.Close(), sql)
			most := 10 * 8.0 * memorySteps * 3 // threads' states of a few planes each
			if least := bytes * memorySeries * memorySteps; least > 0 || groups > 1 {
				require.GreaterOrEqual(t, float64(peak), least, sql)
				most = 8 * memorySeries * memorySteps * 1.5
			}
			if strings.HasPrefix(call, "prom_limitk") && groups == 1 {
				most = 2000 * 8 * memorySteps
			}
			require.LessOrEqual(t, float64(peak), most, sql)

			b = promsql.NewBudget(peak / 2)
			err := drain(t, db, fmt.Sprintf(sql, fmt.Sprintf("budget=%d", b.ID())))
			var memory *promsql.MemoryError
			require.Error(t, err, sql)
			require.ErrorAs(t, b.Err(), &memory, sql)
			require.Equal(t, peak/2, memory.Limit)
			require.ErrorContains(t, err, fmt.Sprint(peak/2), sql)
			require.Zero(t, b.Used(), sql)
			require.NoError(t, b.Close(), sql)

			b = promsql.NewBudget(0)
			b.Cancel()
			require.ErrorContains(t, drain(t, db, fmt.Sprintf(sql, fmt.Sprintf("budget=%d", b.ID()))), "cancel", sql)
			require.NoError(t, b.Close(), sql)
		}
	}
}

func TestBudgetOfSubqueries(t *testing.T) {
	db := openVec(t, 2)
	memoryTable(t, db)
	const sql = "SELECT count(prom_over('quantile_over_time', v, 'start=0 step=10 n=200', 'start=0 step=10 n=200 range=500 phi=0.5 budget=%d'))::BIGINT FROM m"
	b := promsql.NewBudget(1 << 20)
	require.NoError(t, drain(t, db, fmt.Sprintf(sql, b.ID())))
	require.Positive(t, b.Peak())
	require.NoError(t, b.Close())
	b = promsql.NewBudget(1000)
	require.ErrorContains(t, drain(t, db, fmt.Sprintf(sql, b.ID())), "1000")
	require.NoError(t, b.Close())
	b = promsql.NewBudget(0)
	b.Cancel()
	require.ErrorContains(t, drain(t, db, fmt.Sprintf(sql, b.ID())), "cancel")
	require.NoError(t, b.Close())
	require.Error(t, drain(t, db, fmt.Sprintf(sql, b.ID())), "a closed budget is no budget")
}

// TestMemoryOfProcess: all budgets together, and functions without a budget, stay within the limit
// of the process.
func TestMemoryOfProcess(t *testing.T) {
	const limit = 1000
	db := openVec(t, 2)
	memoryTable(t, db)
	const sql = "SELECT count(prom_over('quantile_over_time', v, 'start=0 step=10 n=200', 'start=0 step=10 n=200 range=500 phi=0.5 budget=%d'))::BIGINT FROM m"
	promsql.LimitProcess(limit)
	defer promsql.LimitProcess(0)
	b := promsql.NewBudget(1 << 30)
	err := drain(t, db, fmt.Sprintf(sql, b.ID()))
	require.ErrorContains(t, err, "the process is at its memory limit of 1000 bytes: the functions of all queries need at least ")
	require.ErrorContains(t, err, "raise --memory-limit")
	var full *memory.Error
	require.ErrorAs(t, b.Err(), &full)
	require.EqualValues(t, limit, full.Limit)
	require.Greater(t, full.Needed, full.Limit)
	require.NoError(t, b.Close())
	require.ErrorAs(t, b.Err(), &full, "after the end of the budget")
	require.ErrorContains(t, drain(t, db, fmt.Sprintf(sql, 0)), "--memory-limit", "without a budget")

	promsql.LimitProcess(1 << 30)
	require.NoError(t, drain(t, db, fmt.Sprintf(sql, 0)), "a refusal does not last")
}
