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
			b := newBook("s")
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
