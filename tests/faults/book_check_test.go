package faults

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBook: which answers agree with a sequence of requests.
func TestBook(t *testing.T) {
	const ts = 1000
	write := func(v value, acknowledged bool) func(*book) {
		return func(b *book) { b.wrote(ts, v, "A1", acknowledged) }
	}
	remove := func(mint, maxt int64, acknowledged bool) func(*book) {
		return func(b *book) { b.deleted(mint, maxt, acknowledged) }
	}
	for name, tc := range map[string]struct {
		requests []func(*book)
		allowed  []value
	}{
		"a write":                           {[]func(*book){write(1, true)}, []value{1}},
		"a write that failed":               {[]func(*book){write(1, false)}, []value{nothing, 1}},
		"an overwrite":                      {[]func(*book){write(1, true), write(2, true)}, []value{2}},
		"an overwrite that failed":          {[]func(*book){write(1, true), write(2, false)}, []value{1, 2}},
		"an overwrite of one that failed":   {[]func(*book){write(1, false), write(2, true)}, []value{2}},
		"a deletion":                        {[]func(*book){write(1, true), remove(0, ts, true)}, []value{nothing}},
		"a deletion that failed":            {[]func(*book){write(1, true), remove(ts, ts, false)}, []value{nothing, 1}},
		"a deletion of other times":         {[]func(*book){write(1, true), remove(0, ts-1, true)}, []value{1}},
		"a write after a deletion":          {[]func(*book){write(1, true), remove(0, ts, true), write(2, true)}, []value{2}},
		"a failed write after a deletion":   {[]func(*book){write(1, true), remove(0, ts, true), write(2, false)}, []value{nothing, 2}},
		"a deletion of a write that failed": {[]func(*book){write(1, false), remove(0, ts, true)}, []value{nothing}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(&protocols[0], "s")
			for _, r := range tc.requests {
				r(b)
			}
			for _, v := range []value{nothing, 1, 2} {
				got := map[int64]value{}
				if v != nothing {
					got[ts] = v
				}
				err := b.check(got, "A1")
				if slices.Contains(tc.allowed, v) {
					require.NoError(t, err)
				} else {
					require.Error(t, err, "%s is answered", v)
				}
			}
			require.Error(t, b.check(map[int64]value{ts + 1: 1}, "A1"), "nobody wrote there")
		})
	}
}

// TestPushBook: which answers agree with a sequence of pushes.
func TestPushBook(t *testing.T) {
	b := newPushBook("s")
	b.pushed(1, true)
	b.pushed(2, false)
	b.pushed(3, true)
	for _, good := range [][]sample{{{10, 1}, {20, 3}}, {{10, 1}, {20, 3}, {15, 2}}, {{20, 1}, {10, 3}, {10, 1}}} {
		require.NoError(t, b.check(good, "A1"))
	}
	require.ErrorContains(t, b.check([]sample{{10, 1}, {15, 2}}, "A1"), "answers nothing, allowed are [3]")
	require.ErrorContains(t, b.check([]sample{{10, 1}, {15, 4}, {20, 3}}, "A1"), "answers 4, allowed are []")
}

// TestProtocols: an encoder writes every point with a time in its unit.
func TestProtocols(t *testing.T) {
	for i := range protocols {
		p := &protocols[i]
		t.Run(p.name, func(t *testing.T) {
			const ts = 1_700_000_000_000
			two := p.encode("7", []sample{{ts, 41}, {ts + 60_000, 43}})
			require.NotEqual(t, two, p.encode("7", []sample{{ts, 41}, {ts + 60_000, 44}}))
			require.NotEqual(t, two, p.encode("7", []sample{{ts, 41}, {ts + 60_000 + p.unit, 43}}))
			require.NotEqual(t, two, p.encode("8", []sample{{ts, 41}, {ts + 60_000, 43}}))
		})
	}
}
