package objstore_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

func TestValidKey(t *testing.T) {
	long := strings.Repeat("x", objstore.MaxElementLen)
	for _, key := range []string{
		"a", "a/b", "v1/anonymous/manifest.json", "v1/.hidden/x", "a.b", "a..b", "a/...", "-", "a b", "ä/ö", "a\\b", "a%2Fb", long,
		strings.Repeat("a/", objstore.MaxKeyLen/2-1) + "ab",
	} {
		assert.NoError(t, objstore.ValidKey(key), "%q", key)
	}
	for _, key := range []string{
		"", "/", "/a", "a/", "a//b", ".", "..", "a/.", "a/..", "../a", "./a", "a/../b", "a/./b", ".tmp/a", ".lock", "a\x00b", "a\nb",
		"a\x7f", "\xff", "a/\xc3", "\ufffe", "\uffff", long + "x", "a/" + long + "x/b", strings.Repeat("a/", objstore.MaxKeyLen/2) + "a",
	} {
		assert.ErrorIs(t, objstore.ValidKey(key), objstore.ErrInvalidKey, "%q", key)
	}
}

func TestSpan(t *testing.T) {
	const end = math.MaxInt64
	for _, c := range []struct {
		offset, length, size int64
		start, n             int64
		bad                  bool
	}{
		{offset: 0, length: -1, size: 10, start: 0, n: 10},
		{offset: 0, length: 4, size: 10, start: 0, n: 4},
		{offset: 9, length: 4, size: 10, start: 9, n: 1},
		{offset: 3, length: -1, size: 10, start: 3, n: 7},
		{offset: 3, length: 0, size: 10, start: 3, n: 0},
		{offset: 3, length: end, size: 10, start: 3, n: 7},
		{offset: -3, length: -1, size: 10, start: 7, n: 3},
		{offset: -3, length: 2, size: 10, start: 7, n: 2},
		{offset: -30, length: -1, size: 10, start: 0, n: 10},
		{offset: math.MinInt64, length: 4, size: 10, start: 0, n: 4},
		{offset: 10, length: -1, size: 10, bad: true},
		{offset: 10, length: 0, size: 10, bad: true},
		{offset: end, length: end, size: 10, bad: true},
		{offset: 0, length: -1, size: 0, start: 0, n: 0},
		{offset: -1, length: -1, size: 0, start: 0, n: 0},
		{offset: 0, length: 1, size: 0, bad: true},
		{offset: 1, length: -1, size: 0, bad: true},
	} {
		start, n, err := objstore.Span(c.offset, c.length, c.size)
		if c.bad {
			require.ErrorIs(t, err, objstore.ErrRange, "%+v", c)
			continue
		}
		require.NoError(t, err, "%+v", c)
		assert.Equal(t, [2]int64{c.start, c.n}, [2]int64{start, n}, "%+v", c)
	}
}
