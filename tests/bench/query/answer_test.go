package query

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/answer"
	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/server"
)

func TestAgreement(t *testing.T) {
	nan := math.NaN()
	base := answer.Answer{"x": {1: 1, 2: nan}, "y": {1: math.Inf(1)}}
	require.NoError(t, equal(answer.Answer{"x": {1: 1 + 1e-12, 2: nan}, "y": {1: math.Inf(1)}}, base))
	for want, a := range map[string]answer.Answer{
		"empty":            {},
		"1 series missing": {"x": {1: 1, 2: nan}},
		"1 extra":          {"x": {1: 1, 2: nan}, "y": {1: math.Inf(1)}, "z": {1: 1}},
		"1 points in only": {"x": {1: 1}, "y": {1: math.Inf(1)}},
		"up to 1e-06":      {"x": {1: 1 + 1e-6, 2: nan}, "y": {1: math.Inf(1)}},
		"up to +Inf":       {"x": {1: 1, 2: 3}, "y": {1: math.Inf(1)}},
	} {
		require.ErrorContains(t, equal(a, base), want)
	}
	require.NoError(t, alike(Question{}, base, answer.Answer{"x": {1: 7, 2: 8}, "y": {1: 9}}))
	require.ErrorContains(t, alike(Question{}, base, answer.Answer{"x": {1: 7}, "y": {1: 9}}), "1 of 3 points in only one")
	require.ErrorContains(t, alike(Question{}, base, answer.Answer{"z": {1: 7}}), "1 series missing, 2 extra")
	named := answer.Answer{`{__name__="x", g="1"}`: {1: 7}}
	require.NoError(t, alike(Question{}, answer.Answer{`{g="1"}`: {1: 7}}, named))
	named[`{__name__="y", g="1"}`] = map[int64]float64{1: 7}
	require.ErrorContains(t, alike(Question{}, named, answer.Answer{`{__name__="y", g="1"}`: {1: 7}, `{__name__="z", g="1"}`: {1: 7}}), "1 series missing, 1 extra")
	require.NoError(t, alike(Question{Ties: true}, base, answer.Answer{"z": {1: 7}}))
	require.Error(t, alike(Question{Ties: true}, base, answer.Answer{}))
}

func TestTables(t *testing.T) {
	r := &report{
		Targets: []string{server.Promlake, server.VictoriaMetrics}, Questions: []Question{{Text: "up"}, {Text: "down"}}, PeakRSS: []uint64{3e6, 4e6},
		Prepared: []prepared{{Life: disk.Life{Samples: 10}, Disk: 2e6}, {Life: disk.Life{Samples: 10}, Disk: 3e6}},
		Cells: cells{
			{{Warm: []float64{0.003, 0.001, 0.002}, CPU: 0.004}, {Warm: []float64{0.004}, CPU: 0.001}},
			{{Warm: []float64{1}}, {Error: "no"}},
		},
	}
	var b strings.Builder
	require.ErrorIs(t, r.publish(&b, false), errFailed)
	for _, line := range []string{
		"| warm, ms, median | promlake | victoria-metrics | promlake/victoria-metrics |",
		"| up, instant      |      2.0 |              4.0 |                      0.50 |",
		"| down, instant    |   1000.0 |                – |                         – |",
		"| up, instant    |      1.0 |              4.0 |                      0.25 |",
		"| promlake         |      10 |      2.0 |                      3 |",
	} {
		require.Contains(t, b.String(), line)
	}
	require.NotContains(t, b.String(), "cold")
	b.Reset()
	require.ErrorIs(t, r.publish(&b, true), errFailed)
	require.Contains(t, b.String(), `"peak_rss_bytes": [`)
}
