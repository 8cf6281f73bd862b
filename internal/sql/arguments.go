package sql

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/prom/timeparam"
)

// momentLayouts are how DuckDB writes TIMESTAMP WITH TIME ZONE, TIMESTAMP and DATE. Times without
// a zone are in UTC.
var momentLayouts = []string{"2006-01-02 15:04:05.999999-07", "2006-01-02 15:04:05.999999-07:00", "2006-01-02 15:04:05.999999", "2006-01-02"}

// moment reads an argument that is a time: one of SQL, or one of Prometheus' API.
func moment(name string, argument *string) (time.Time, error) {
	if argument == nil {
		return time.Time{}, fmt.Errorf("%s is NULL; want a time", name)
	}
	if t, err := timeparam.Parse(*argument); err == nil {
		return t, nil
	}
	for _, layout := range momentLayouts {
		if t, err := time.Parse(layout, *argument); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s is %q; want a time of SQL, seconds since 1970, or RFC 3339", name, *argument)
}

// bounds reads the arguments start and end, in ms. NULL is no bound.
func bounds(start, end *string, least, most int64) (mint, maxt int64, err error) {
	mint, maxt = least, most
	if start != nil {
		t, err := moment("start", start)
		if err != nil {
			return 0, 0, err
		}
		if mint = t.UnixMilli(); t.After(time.UnixMilli(mint)) {
			mint++
		}
	}
	if end != nil {
		t, err := moment("end", end)
		if err != nil {
			return 0, 0, err
		}
		maxt = t.UnixMilli()
	}
	return max(mint, least), min(maxt, most), nil
}

// interval is how DuckDB writes an INTERVAL without months.
var interval = regexp.MustCompile(`^(?:(\d+) days? ?)?(?:(\d+):(\d\d):(\d\d(?:\.\d+)?))?$`)

// step reads an argument that is a duration: an INTERVAL, a duration of PromQL, or seconds.
func step(argument *string) (time.Duration, error) {
	if argument == nil {
		return 0, fmt.Errorf("step is NULL; want a duration")
	}
	text, d := strings.TrimSpace(*argument), time.Duration(0)
	if s, err := strconv.ParseFloat(text, 64); err == nil && s < 1e9 {
		d = time.Duration(s * float64(time.Second))
	} else if p, err := model.ParseDuration(text); err == nil {
		d = time.Duration(p)
	} else if m := interval.FindStringSubmatch(text); m != nil && text != "" {
		days, _ := strconv.Atoi("0" + m[1])
		hours, _ := strconv.Atoi("0" + m[2])
		minutes, _ := strconv.Atoi("0" + m[3])
		seconds, _ := strconv.ParseFloat("0"+m[4], 64)
		d = time.Duration(24*days+hours)*time.Hour + time.Duration(minutes)*time.Minute + time.Duration(seconds*float64(time.Second))
	} else {
		return 0, fmt.Errorf("step is %q; want an INTERVAL of days or less, a duration such as 5m, or seconds", text)
	}
	if d < time.Millisecond {
		return 0, fmt.Errorf("step is %q; want at least a millisecond", text)
	}
	return d, nil
}
