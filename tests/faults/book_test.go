package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// value is what an answer may have at a timestamp of a series; the zero value is nothing.
type value float64

const nothing value = 0 // no writer writes it

func (v value) String() string {
	if v == nothing {
		return "nothing"
	}
	return fmt.Sprint(float64(v))
}

// book is what one series may hold, by timestamp (ms), after a sequence of requests that did not
// overlap: what the last acknowledged one made of it, or one after it that was not acknowledged.
type book struct {
	protocol *protocol
	series   string
	points   map[int64]*point
	events   []string
}

type point struct {
	may  []value
	last time.Time // when the last write of it was over
	by   string    // the process that took it
}

func newBook(p *protocol, series string) *book {
	return &book{protocol: p, series: series, points: map[int64]*point{}}
}

// selector selects the series of the book.
func (b *book) selector() string { return fmt.Sprintf("%s{s=%q}", b.protocol.metric, b.series) }

func (b *book) note(format string, args ...any) {
	b.events = append(b.events, time.Now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (b *book) at(ts int64) *point {
	p := b.points[ts]
	if p == nil {
		p = &point{may: []value{nothing}}
		b.points[ts] = p
	}
	return p
}

// wrote records a write that is over.
func (b *book) wrote(ts int64, v value, by string, acknowledged bool) {
	p := b.at(ts)
	p.last, p.by = time.Now(), by
	p.became(v, acknowledged)
}

// deleted records a deletion of [mint, maxt] that is over.
func (b *book) deleted(mint, maxt int64, acknowledged bool) {
	for ts, p := range b.points {
		if mint <= ts && ts <= maxt {
			p.became(nothing, acknowledged)
		}
	}
}

func (p *point) became(v value, acknowledged bool) {
	switch {
	case acknowledged:
		p.may = []value{v}
	case !slices.Contains(p.may, v):
		p.may = append(p.may, v)
	}
}

// check compares an answer with the book.
func (b *book) check(got map[int64]value, from string) error {
	for _, ts := range slices.Sorted(maps.Keys(got)) {
		if b.points[ts] == nil {
			return b.wrong(ts, got[ts], nil, from)
		}
	}
	for _, ts := range slices.Sorted(maps.Keys(b.points)) {
		if p := b.points[ts]; !slices.Contains(p.may, got[ts]) {
			return b.wrong(ts, got[ts], p.may, from)
		}
	}
	return nil
}

// mismatch is an answer that disagrees with the book.
type mismatch struct {
	series string
	ts     int64
	text   string
}

func (m *mismatch) Error() string { return m.text }

func (b *book) wrong(ts int64, got value, may []value, from string) error {
	name := fmt.Sprintf("%d ", ts)
	var history []string
	for _, e := range b.events {
		if strings.Contains(e, name) || strings.Contains(e, "delete") {
			history = append(history, e)
		}
	}
	text := fmt.Sprintf("series %s at %d: %s answers %s, allowed are %v; its history:\n%s", b.selector(), ts, from, got, may, strings.Join(history, "\n"))
	return &mismatch{b.series, ts, text}
}
