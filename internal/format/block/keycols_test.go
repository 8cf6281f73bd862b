package block_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
)

// TestIdentifiersOfShortSeries writes blocks of few and many, short and long series: many short ones
// have no dictionary of identifiers. Each file has the rows of its series, also to DuckDB.
func TestIdentifiersOfShortSeries(t *testing.T) {
	for _, tc := range []struct {
		series, samples int
		plain           bool
	}{{4095, 3, false}, {4096, 1, true}, {5000, 15, true}, {5000, 16, false}} {
		t.Run(fmt.Sprintf("series=%d/samples=%d", tc.series, tc.samples), func(t *testing.T) {
			var in []input
			for i := range tc.series {
				s := block.Samples{TS: stamps(1000, 15_000, tc.samples), V: make([]float64, tc.samples)}
				s.V[0] = float64(i)
				in = append(in, input{labels.FromStrings("__name__", "m", "i", fmt.Sprint(i)), s})
			}
			files, _ := write(t, in, nil, block.Options{}, block.Header{})
			require.Equal(t, expect(t, in), read(t, files))
			for _, c := range openParquet(t, files.closed[block.SamplesFile(0)]).Metadata().RowGroups[0].Columns {
				if p := c.MetaData.PathInSchema[0]; p == "series_id" || p == block.ColSignedID {
					require.Equal(t, tc.plain, c.MetaData.DictionaryPageOffset == 0, p)
				}
			}
			sql := `SELECT count(*) || ' ' || count(DISTINCT series_id) || ' ' || bool_and(id_signed = CAST(series_id AS HUGEINT) - CASE WHEN series_id >= 9223372036854775808 THEN 18446744073709551616::HUGEINT ELSE 0 END) FROM read_parquet('%s/samples-*.parquet')`
			require.Equal(t, fmt.Sprint(tc.series*tc.samples, tc.series, true), text(t, openDuckDB(t), fmt.Sprintf(sql, files.save(t))))
		})
	}
}
