package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

func TestStatementCarriesItsArguments(t *testing.T) {
	p := planKnown(t, `sum by (job) (c_total)`, instant, nil).Pushed[0]
	s := p.Statement([]Scan{"SCAN 0"}, "17")
	assert.Equal(t, `WITH n0 AS (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(i, v, 'budget=17') AS v FROM n0 GROUP BY 1))`+
		` SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL`, s.SQL)
	require.Len(t, s.Args, 1)
	assert.Equal(t, vector.OrdinalArray([]uint32{0, 1, 0}), s.Args[0], "in the order of the labels: inst 1 of a, inst 1 of b, inst 2 of a")
	assert.Contains(t, s.Text(), "prom_at(i, unhex('000000000100000000000000'))")
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
	assert.Equal(t, `WITH n0 AS MATERIALIZED (SCAN 0), n1 AS (SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $1) AS UTINYINT) AS i, prom_sum(v) AS v FROM n0 GROUP BY 1)`+
		` UNION ALL SELECT CAST(i AS UINTEGER) AS i, v FROM (SELECT CAST(prom_at(i, $2) AS UTINYINT) AS i, prom_count(v) AS v FROM n0 GROUP BY 1)) SELECT i, v FROM n1 WHERE i IS NOT NULL AND v IS NOT NULL`,
		parts[0].Statement(scansOf(parts[0]), "").SQL)
}
