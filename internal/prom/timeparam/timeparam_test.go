package timeparam_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/prom/timeparam"
)

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"0":                         "1970-01-01T00:00:00Z",
		"1700000000":                "2023-11-14T22:13:20Z",
		"1700000000.5":              "2023-11-14T22:13:20.5Z",
		"1700000000.1234":           "2023-11-14T22:13:20.123Z",
		"-1.25":                     "1969-12-31T23:59:58.75Z",
		"1.7e9":                     "2023-11-14T22:13:20Z",
		"2023-11-14T22:13:20Z":      "2023-11-14T22:13:20Z",
		"2023-11-14T23:13:20+01:00": "2023-11-14T22:13:20Z",
		"2023-11-14T22:13:20.25Z":   "2023-11-14T22:13:20.25Z",
	} {
		got, err := timeparam.Parse(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got.UTC().Format(time.RFC3339Nano), in)
	}
	for _, in := range []string{"", "now", "NaN", "Inf", "-Inf", "1e300", "2023-11-14", "2023-11-14 22:13:20"} {
		_, err := timeparam.Parse(in)
		require.EqualError(t, err, `cannot parse "`+in+`" to a valid timestamp`)
	}
}
