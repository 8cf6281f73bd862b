package timeparam_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/timeparam"
)

// TestClocks: what is written reads as the same time.
func TestClocks(t *testing.T) {
	for _, text := range []string{"unix_s", "unix_ms", "unix_us", "unix_ns", "custom:2006-01-02 15:04:05.000"} {
		c, err := timeparam.ParseClock(text)
		require.NoError(t, err)
		for _, ms := range []int64{0, 5, now, now + 1, now + 999, -1, -86_400_001} {
			got, err := c.Millis(string(c.Append(nil, ms)))
			require.NoError(t, err)
			require.Equal(t, ms, got, text)
		}
	}
}

const now = 1_700_000_000_000 // ms
