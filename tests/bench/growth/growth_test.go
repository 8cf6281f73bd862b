package growth

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/load"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

func measured(name string, series int, sample, query float64) result {
	return result{
		Server: name, Series: series, Queries: asked{First: queries{CPU: 4}, Again: queries{CPU: query}},
		Load: load.Report{Server: &load.Server{CPUPerMillion: sample, PeakRSSBytes: 90e6}},
	}
}

func TestRows(t *testing.T) {
	got := rows([]result{
		measured(server.Promlake, 1000, 0.5, 1), measured(server.VictoriaMetrics, 1000, 1, 0.5),
		measured(server.Promlake, 9000, 1, 1.25), measured(server.Promlake, 10000, 1, 0),
	})
	require.Equal(t, [][]string{
		{"1000", "promlake", "0.500", "1.00", "0.50", "90.00", "1.00", "1.00", "4.00", "1.00", "1.00", "1.00", "1.00", "2.00"},
		{"1000", "victoria-metrics", "1.000", "1.00", "–", "90.00", "1.00", "–", "4.00", "1.00", "–", "0.50", "1.00", "–"},
		{"9000", "promlake", "1.000", "0.50", "–", "10.00", "9.00", "–", "4.00", "1.00", "–", "1.25", "0.80", "–"},
		{"10000", "promlake", "1.000", "0.50", "–", "9.00", "10.00", "–", "4.00", "1.00", "–", "0.00", "–", "–"},
	}, got[1:])
}

func TestComparisons(t *testing.T) {
	all := comparisons([]result{
		measured(server.Promlake, 1000, 0.5, 1), measured(server.VictoriaMetrics, 1000, 1, 0.5),
		measured(server.Promlake, 9000, 1, 1.25), measured(server.VictoriaMetrics, 9000, 3, 0.5),
	})
	require.Len(t, all, 4+8)
	require.Equal(t, []table.Comparison{
		{Name: "9,000 series: samples", Unit: "CPU-s per million samples", Promlake: 1, Peer: 3},
		{Name: "9,000 series: samples", Unit: "times that of 1,000 series", Promlake: 2, Peer: 3},
	}, all[4:6])
	all = comparisons([]result{measured(server.Promlake, 1000, 0.5, 0), measured(server.Promlake, 9000, 1, 1.25)})
	require.Equal(t, table.Comparison{Name: "9,000 series: repeated queries", Unit: "times that of 1,000 series"}, all[11], "too little to be measured")
}

func TestAnswered(t *testing.T) {
	require.NoError(t, answered([]byte(`{"data":{"result":[{"metric":{}}]}}`)))
	require.ErrorContains(t, answered([]byte(`{"data":{"result":[]}}`)), "no series")
	require.ErrorContains(t, answered([]byte(`x`)), "parse answer")
}
