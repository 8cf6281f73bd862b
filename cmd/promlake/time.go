package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// parseTime reads a flag's point in time: RFC 3339, or seconds since 1970 with a fraction; "" is
// now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now, nil
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < 1<<40 {
		return time.UnixMilli(int64(math.Round(s * 1000))).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--%s %q: want RFC 3339 or seconds since 1970", flag, text)
	}
	return t, nil
}
