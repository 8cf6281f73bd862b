// Package timeparam parses the time parameters of Prometheus' HTTP API.
package timeparam

import (
	"fmt"
	"math"
	"strconv"
	"strings"
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

// Clock is a format of times.
type Clock struct {
	unit   int64  // ns; 0: layout
	name   string // of units
	layout string // of package time
}

var clocks = map[string]Clock{
	"unix_s":  {unit: int64(time.Second), name: "seconds"},
	"unix_ms": {unit: int64(time.Millisecond), name: "milliseconds"},
	"unix_us": {unit: int64(time.Microsecond), name: "microseconds"},
	"unix_ns": {unit: 1, name: "nanoseconds"},
	"rfc3339": {layout: time.RFC3339},
}

// ParseClock parses unix_s, unix_ms, unix_us, unix_ns, rfc3339, or custom: with a layout of Go's
// package time.
func ParseClock(text string) (Clock, error) {
	if c, ok := clocks[text]; ok {
		return c, nil
	}
	if layout, ok := strings.CutPrefix(text, "custom:"); ok && layout != "" {
		return Clock{layout: layout}, nil
	}
	return Clock{}, fmt.Errorf("time %q is not one of unix_s, unix_ms, unix_us, unix_ns, rfc3339, custom:<layout>", text)
}

// Millis parses a time. Seconds and milliseconds may have decimals.
func (c Clock) Millis(text string) (int64, error) {
	if c.unit == 0 {
		t, err := time.Parse(c.layout, text)
		if err != nil {
			return 0, fmt.Errorf("%q is not a time like %s", text, c.layout)
		}
		return t.UnixMilli(), nil
	}
	const ms = int64(time.Millisecond)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if c.unit < ms {
			return n / (ms / c.unit), nil
		}
		if per := c.unit / ms; n <= math.MaxInt64/per && n >= math.MinInt64/per {
			return n * per, nil
		}
	} else if v, err := strconv.ParseFloat(text, 64); err == nil && c.unit >= ms {
		if out := v * float64(c.unit/ms); math.Abs(out) < math.MaxInt64 {
			return int64(math.Round(out)), nil
		}
	}
	return 0, fmt.Errorf("%q is not a number of %s", text, c.name)
}

// Append writes a time (ms). Seconds get decimals if the time is none.
func (c Clock) Append(dst []byte, t int64) []byte {
	switch c.unit {
	case 0:
		return time.UnixMilli(t).UTC().AppendFormat(dst, c.layout)
	case int64(time.Second):
		if t%1000 != 0 {
			return strconv.AppendFloat(dst, float64(t)/1000, 'f', -1, 64)
		}
		return strconv.AppendInt(dst, t/1000, 10)
	}
	dst = strconv.AppendInt(dst, t, 10)
	for unit := c.unit; t != 0 && unit < int64(time.Millisecond); unit *= 10 {
		dst = append(dst, '0')
	}
	return dst
}
