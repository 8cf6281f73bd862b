package settings

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/units"
	"github.com/prometheus/common/model"
)

// Parse reads a value as a flag has it; typ is the field's tag "type".
func Parse(text, typ string, into reflect.Value) error {
	switch {
	case typ == "bytes":
		n, err := ParseBytes(text)
		if err == nil && into.OverflowInt(n) {
			err = fmt.Errorf("size %q: does not fit", text)
		}
		into.SetInt(n)
		return err
	case typ == "period" && into.Kind() == reflect.Map:
		return parsePeriods(text, into)
	case typ == "period":
		d, err := parsePeriod(text)
		into.SetInt(int64(d))
		return err
	}
	var err error
	switch field := into.Addr().Interface().(type) {
	case *time.Duration:
		*field, err = time.ParseDuration(text)
	case *[]string:
		*field = strings.Split(text, ",")
	case *bool:
		*field, err = strconv.ParseBool(text)
	case *float64:
		*field, err = strconv.ParseFloat(text, 64)
	default:
		if into.Kind() == reflect.String {
			into.SetString(text)
			return nil
		}
		var n int64
		n, err = strconv.ParseInt(text, 10, into.Type().Bits())
		into.SetInt(n)
	}
	return err
}

// Format writes a value as Parse reads it.
func Format(v reflect.Value, typ string) string {
	switch {
	case typ == "bytes" && v.Int() != 0 && v.Int()%(1<<10) == 0:
		return units.Base2Bytes(v.Int()).String()
	case typ == "bytes":
		return fmt.Sprint(v.Int())
	case typ == "period" && v.Kind() == reflect.Map:
		periods := v.Interface().(map[string]time.Duration)
		var texts []string
		for _, tenant := range slices.Sorted(maps.Keys(periods)) {
			texts = append(texts, tenant+"="+formatPeriod(periods[tenant]))
		}
		return strings.Join(texts, ",")
	case typ == "period":
		return formatPeriod(time.Duration(v.Int()))
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		return formatDuration(x)
	case []string:
		return strings.Join(x, ",")
	default:
		return fmt.Sprint(x)
	}
}

// ParseBytes reads a size in bytes: a plain number, or one with a unit (KiB, MiB, GiB, TiB).
func ParseBytes(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, nil
	}
	n, err := units.ParseBase2Bytes(text)
	if err != nil {
		return 0, fmt.Errorf("size %q: want bytes such as 1048576 or 64MiB", text)
	}
	return int64(n), nil
}

// parsePeriod reads a long duration as Prometheus writes them; 0 needs no unit.
func parsePeriod(text string) (time.Duration, error) {
	d, err := model.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("period %q: want one such as 90m, 36h or 30d", text)
	}
	return time.Duration(d), nil
}

// formatPeriod writes what is no whole number of milliseconds, or negative, as Go does.
func formatPeriod(d time.Duration) string {
	if d < 0 || d%time.Millisecond != 0 {
		return formatDuration(d)
	}
	return model.Duration(d).String()
}

// parsePeriods adds tenant=period pairs to a map.
func parsePeriods(text string, into reflect.Value) error {
	if into.IsNil() {
		into.Set(reflect.MakeMap(into.Type()))
	}
	if text == "" {
		return nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		tenant, period, ok := strings.Cut(pair, "=")
		if !ok || tenant == "" {
			return fmt.Errorf("period of a tenant %q: want tenant=period such as team-a=30d", pair)
		}
		d, err := parsePeriod(period)
		if err != nil {
			return err
		}
		into.SetMapIndex(reflect.ValueOf(tenant), reflect.ValueOf(d))
	}
	return nil
}

// formatDuration is time.Duration's text without zero minutes and seconds at its end: 5m, not 5m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
