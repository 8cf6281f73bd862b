package remote

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRangeHeader(t *testing.T) {
	for _, c := range []struct {
		offset, length int64
		want           string
	}{
		{0, -1, ""}, {0, 1, "bytes=0-0"}, {5, 10, "bytes=5-14"}, {5, -1, "bytes=5-"}, {-5, -1, "bytes=-5"}, {-5, 2, "bytes=-5"},
		{5, math.MaxInt64, "bytes=5-9223372036854775806"},
		{math.MaxInt64, math.MaxInt64, "bytes=9223372036854775807-9223372036854775807"},
		{math.MinInt64, -1, "bytes=-9223372036854775807"},
	} {
		assert.Equal(t, c.want, RangeHeader(c.offset, c.length), "%+v", c)
	}
}

func TestParseContentRange(t *testing.T) {
	first, size, err := parseContentRange("bytes 3-9/20")
	require.NoError(t, err)
	assert.Equal(t, [2]int64{3, 20}, [2]int64{first, size})
	first, size, err = parseContentRange("bytes 0--1/0") // of a test server
	require.NoError(t, err)
	assert.Equal(t, [2]int64{0, 0}, [2]int64{first, size})
	for _, v := range []string{"", "bytes", "bytes 3-1/20", "bytes 3-20/20", "bytes */20", "bytes 3-9/*", "bytes 3/20", "bytes x-9/20", "bytes 20-29/20", "bytes -3-9/20"} {
		_, _, err := parseContentRange(v)
		assert.Error(t, err, v)
	}
}

func TestBackoff(t *testing.T) {
	p := Policy{MinBackoff: time.Millisecond, MaxBackoff: 100 * time.Millisecond}
	for n, top := range map[int]time.Duration{1: 1, 2: 2, 5: 16, 8: 100, 5000: 100} {
		for range 100 {
			d := p.Delay(n)
			require.GreaterOrEqual(t, d, time.Duration(0))
			require.LessOrEqual(t, d, top*time.Millisecond, "attempt %d", n)
		}
	}
}

func TestRepresentable(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a/ö/日": "a/ö/日", "a\x00b": "a", "a\nb": "a", "ab\xff": "ab", "日\xe6\x97": "日", "\uffff": "", "a\uFFFDb": "a\uFFFDb",
	} {
		assert.Equal(t, want, Representable(in), "%q", in)
	}
}
