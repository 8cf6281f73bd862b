package key

import (
	"fmt"
	"time"
)

// Level is the range of time that a block covers. The zero value is Part.
type Level uint8

// The levels, in order of the lifetime of their blocks. A part holds some of the samples of a 2h
// window; a block of another level holds the samples of its window that had settled when it was
// made.
const (
	Part Level = iota
	L2h
	L12h
	L24h
)

// Levels lists all levels in ascending order.
var Levels = []Level{Part, L2h, L12h, L24h}

var levelNames = [...]string{Part: "part", L2h: "2h", L12h: "12h", L24h: "24h"}

// String formats the level as in keys.
func (l Level) String() string {
	if int(l) >= len(levelNames) {
		return fmt.Sprintf("level(%d)", uint8(l))
	}
	return levelNames[l]
}

// ParseLevel is the inverse of Level.String.
func ParseLevel(s string) (Level, error) {
	for _, l := range Levels {
		if levelNames[l] == s {
			return l, nil
		}
	}
	return 0, fmt.Errorf("parse level %q: %w", s, ErrSyntax)
}

// Millis returns the length of the level's windows in ms.
func (l Level) Millis() int64 {
	switch l {
	case L12h:
		return 12 * time.Hour.Milliseconds()
	case L24h:
		return 24 * time.Hour.Milliseconds()
	default:
		return WindowMillis
	}
}

// WindowOf returns the start of the level's window that contains the timestamp t (ms, within
// [MinTime, MaxTime]): the largest multiple of Millis that is not greater than t.
func (l Level) WindowOf(t int64) Window {
	n := t / l.Millis()
	if t%l.Millis() < 0 {
		n--
	}
	return Window(n * l.Millis())
}

// End returns the first timestamp (ms) after the level's window w.
func (l Level) End(w Window) int64 { return int64(w) + l.Millis() }

// MarshalText implements encoding.TextMarshaler with the name of the level.
func (l Level) MarshalText() ([]byte, error) {
	if int(l) >= len(levelNames) {
		return nil, fmt.Errorf("marshal %s: %w", l, ErrSyntax)
	}
	return []byte(levelNames[l]), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(b []byte) error {
	v, err := ParseLevel(string(b))
	if err == nil {
		*l = v
	}
	return err
}
