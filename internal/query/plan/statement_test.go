package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

func TestStatementCarriesItsArguments(t *testing.T) {
	p := planKnown(t, `sum by (job) (c_total)`, instant, nil).Pushed[0]
	wanted := []byte{0xca, 0xfe}
	scan := Scan{SQL: "SELECT 'it costs $1' WHERE x = " + Arg(0) + " AND y <> " + Arg(0), Args: [][]byte{wanted}}
	s := p.Statement([]Scan{scan}, "17")
	const inner = `prom_instant(rank, ts, v_int, v_div, 'start=600000 step=1 n=1 range=300000 shift=0 budget=17') AS v`
	assert.Equal(t, `WITH n0 AS (SELECT prom_pick(series_id, $3) AS i, `+inner+` FROM (SELECT 'it costs $1' WHERE x = $2 AND y <> $2)`+
		` GROUP BY series_id HAVING i IS NOT NULL AND v IS NOT NULL), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, 'budget=17') AS v FROM n0 GROUP BY 1))`+
		` SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL`, s.SQL)
	require.Len(t, s.Args, 3)
	assert.Equal(t, ordinals.Array([]uint32{0, 1, 0}), s.Args[0], "in the order of the labels: inst 1 of a, inst 1 of b, inst 2 of a")
	assert.Equal(t, wanted, s.Args[1])
	assert.Equal(t, ordinals.Map([]uint64{1, 2, 3}, []uint32{0, 1, 2}), s.Args[2])

	assert.Equal(t, `WITH n0 AS (SELECT prom_pick(series_id, unhex('010000000000000000000000020000000000000001000000030000000000000002000000')) AS i, `+inner+
		` FROM (SELECT 'it costs $1' WHERE x = unhex('cafe') AND y <> unhex('cafe')) GROUP BY series_id HAVING i IS NOT NULL AND v IS NOT NULL),`+
		` n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, unhex('000000000100000000000000')) AS UTINYINT) AS i, prom_sum(i, v, 'budget=17') AS v FROM n0 GROUP BY 1))`+
		` SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL`, s.Text())
}

func TestPartOfAnAverageReturnsSumsAndCounts(t *testing.T) {
	p := planKnown(t, `avg(c_total)`, instant, nil).Pushed[0]
	parts, _, ok := p.Partition(150)
	require.True(t, ok)
	require.Len(t, parts, 3)
	assert.Equal(t, `pushed 0: 2 series on start=600000 step=1 n=1
  sum and count of avg: 2 series
    instant {__name__="c_total"} start=600000 step=1 n=1 range=300000 shift=0: 1 series, 100 samples
`, parts[0].String())
	assert.Equal(t, `WITH n0 AS MATERIALIZED (SELECT prom_pick(series_id, $2) AS i, prom_instant(rank, ts, v_int, v_div, 'start=600000 step=1 n=1 range=300000 shift=0') AS v`+
		` FROM (SCAN 0) GROUP BY series_id HAVING i IS NOT NULL AND v IS NOT NULL), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(v) AS v FROM n0 GROUP BY 1)`+
		` UNION ALL SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $3) AS UTINYINT) AS i, prom_count(v) AS v FROM n0 GROUP BY 1)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL`,
		parts[0].Statement(scansOf(parts[0]), "").SQL)
}
