package small

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

func TestComparisons(t *testing.T) {
	f := Flags{Rate: 700, Duration: 75 * time.Minute}
	require.Equal(t, []table.Comparison{
		{Name: "a small server, 700 samples/s for 1h15m0s: processor", Unit: "CPU-s", Promlake: 30, Peer: 25},
		{Name: "a small server, 700 samples/s for 1h15m0s: memory", Unit: "MB", Promlake: 160, Peer: 70},
		{Name: "a small server, 700 samples/s for 1h15m0s: peak memory", Unit: "MB", Promlake: 180, Peer: 90},
	}, f.comparisons([]result{{Server: server.Promlake, CPU: 30, RSS: 160e6, PeakRSS: 180e6}, {Server: server.VictoriaMetrics, CPU: 25, RSS: 70e6, PeakRSS: 90e6}}))
}

func TestWatchMemory(t *testing.T) {
	readings, err := watchMemory(t.Context(), -1)
	require.Error(t, err)
	require.Empty(t, readings)
}

func TestMeasureRefuses(t *testing.T) {
	_, err := (&Flags{Rate: 0, Duration: time.Hour}).measure(t.Context())
	require.ErrorContains(t, err, "want a rate")
	_, err = (&Flags{Rate: 1, Duration: time.Second}).measure(t.Context())
	require.ErrorContains(t, err, "at least 10 seconds")
}
