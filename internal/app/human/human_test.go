package human_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/human"
)

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1: "1 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 3 << 30: "3.0 GiB",
		-2048: "-2.0 KiB", math.MaxInt64: "8.0 EiB",
	} {
		require.Equal(t, want, human.Bytes(n), n)
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0k", 1549: "1.5k", 999_960: "1.0M", 17_280_000: "17.3M"} {
		require.Equal(t, want, human.Count(n), n)
	}
}

func TestRatio(t *testing.T) {
	require.Equal(t, "0.438", human.Ratio(438, 1000))
	require.Equal(t, "–", human.Ratio(1, 0))
}

func TestPerSecond(t *testing.T) {
	require.Equal(t, "3.0M/s", human.PerSecond(6_000_000, 2*time.Second))
	require.Equal(t, "–", human.PerSecond(1, 0))
}

func TestTime(t *testing.T) {
	require.Equal(t, "1970-01-01T00:00:00Z", human.Time(0))
	require.Equal(t, "1970-01-01T00:00:01.5Z", human.Time(1500))
}

func TestTable(t *testing.T) {
	table := human.Table{Left: 1}
	require.Empty(t, table.String())
	table.Row("LEVEL", "BLOCKS", "BYTES")
	table.Row("2h", "12", "1.0 MiB")
	table.Row("–", "", "7 B")
	require.Equal(t, ""+
		"LEVEL  BLOCKS    BYTES\n"+
		"2h         12  1.0 MiB\n"+
		"–                  7 B\n", table.String())
}
