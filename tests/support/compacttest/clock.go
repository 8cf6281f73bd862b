package compacttest

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
)

// Day is the 24h window that most tests are about: 1 March 2026.
var Day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// Clock is a time of the day, or of a later one: Clock("26:10") is ten past two in the night.
func Clock(hhmm string) time.Time {
	var h, m int
	if _, err := fmt.Sscanf(hhmm, "%d:%d", &h, &m); err != nil {
		panic(err)
	}
	return Day.Add(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute)
}

// ID is the n-th ULID of a moment.
func ID(t time.Time, n byte) (id ulid.ULID) {
	if err := id.SetTime(ulid.Timestamp(t)); err != nil {
		panic(err)
	}
	id[15] = n
	return id
}
