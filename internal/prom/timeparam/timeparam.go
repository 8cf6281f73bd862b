// Package timeparam parses the time parameters of Prometheus' HTTP API.
package timeparam

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// maxSeconds bounds times: beyond it (year 292277026596) int64 seconds overflow.
const maxSeconds = math.MaxInt64 / 2

// Parse parses seconds since the Unix epoch, with a fraction that is rounded to milliseconds, or
// RFC 3339. The text of its error is Prometheus'.
func Parse(s string) (time.Time, error) {
	if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < maxSeconds {
		whole, frac := math.Modf(f)
		millis := time.Duration(math.Round(frac * 1000))
		return time.Unix(int64(whole), 0).Add(millis * time.Millisecond).UTC(), nil
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	return time.Time{}, fmt.Errorf("cannot parse %q to a valid timestamp", s)
}
