package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
)

// parseTime reads a flag's point in time: "now", "now-1h" or "now+1h" with a duration as in PromQL,
// RFC 3339, or seconds since 1970 with a fraction; "" is now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if offset, ok := strings.CutPrefix(text, "now"); ok || text == "" {
		if offset == "" {
			return now, nil
		}
		d, err := model.ParseDuration(offset[1:])
		switch {
		case err == nil && offset[0] == '-':
			return now.Add(-time.Duration(d)), nil
		case err == nil && offset[0] == '+':
			return now.Add(time.Duration(d)), nil
		}
	}
	if s, err := strconv.ParseFloat(text, 64); err == nil && math.Abs(s) < 1<<40 {
		return time.UnixMilli(int64(math.Round(s * 1000))).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--%s %q: want now-1h, RFC 3339 or seconds since 1970", flag, text)
	}
	return t, nil
}
