package key_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

const hour = int64(time.Hour / time.Millisecond)

func TestWindowOf(t *testing.T) {
	for _, c := range []struct {
		t    int64
		want key.Window
		text string
	}{
		{0, 0, "19700101T0000Z"},
		{1, 0, "19700101T0000Z"},
		{2*hour - 1, 0, "19700101T0000Z"},
		{2 * hour, key.Window(2 * hour), "19700101T0200Z"},
		{-1, key.Window(-2 * hour), "19691231T2200Z"},
		{-2 * hour, key.Window(-2 * hour), "19691231T2200Z"},
		{-2*hour - 1, key.Window(-4 * hour), "19691231T2000Z"},
		{1_753_977_599_999, 1_753_970_400_000, "20250731T1400Z"},
		{key.MinTime, key.Window(key.MinTime), "00000101T0000Z"},
		{key.MaxTime, key.Window(key.MaxTime + 1 - 2*hour), "99991231T2200Z"},
	} {
		w := key.WindowOf(c.t)
		assert.Equal(t, c.want, w, "%d", c.t)
		assert.Equal(t, c.text, w.String(), "%d", c.t)
		assert.LessOrEqual(t, int64(w), c.t)
		assert.Greater(t, w.End(), c.t)
		back, err := key.ParseWindow(w.String())
		require.NoError(t, err)
		assert.Equal(t, w, back)
	}
}

func TestParseWindowRefuses(t *testing.T) {
	for _, s := range []string{
		"", "20250731", "20250731T1400", "20250731T1400z", "20250731T1500Z", "20250731T1401Z", "20250731T2400Z", "20250231T0000Z",
		"20251331T0000Z", "2025-07-31T14:00Z", "20250731T140000Z", "120250731T1400Z", "-0010731T1400Z", " 20250731T1400Z", "20250731T1400Z/",
	} {
		_, err := key.ParseWindow(s)
		assert.ErrorIs(t, err, key.ErrSyntax, "%q", s)
	}
}

func TestSegment(t *testing.T) {
	id := ulid.MustParse("01K1GZ8V6D8Q7N0XJ5W3C2B1A9")
	s := key.Segment{Tenant: "team-a", Window: key.WindowOf(1_753_977_599_999), ID: id}
	const want = "v1/team-a/segments/20250731T1400Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9.parquet"
	assert.Equal(t, want, s.String())
	assert.Equal(t, "v1/team-a/", key.TenantPrefix("team-a"))
	assert.Equal(t, "v1/team-a/segments/", key.SegmentsPrefix("team-a"))
	assert.Equal(t, "v1/team-a/segments/20250731T1400Z/", key.WindowPrefix("team-a", s.Window))
	back, err := key.ParseSegment(want)
	require.NoError(t, err)
	assert.Equal(t, s, back)
	assert.NoError(t, objstore.ValidKey(want))
}

func TestLongestTenantMakesValidKeys(t *testing.T) {
	for _, tenant := range []string{strings.Repeat("x", 150), ".hidden", "!-_.*'()"} {
		s := key.Segment{Tenant: tenant, Window: key.WindowOf(key.MaxTime), ID: ulid.ULID{0xff}}
		assert.NoError(t, objstore.ValidKey(s.String()), tenant)
	}
}

func TestParseSegmentRefuses(t *testing.T) {
	const good = "v1/t/segments/20250731T1400Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9.parquet"
	_, err := key.ParseSegment(good)
	require.NoError(t, err)
	for _, k := range []string{
		"", "v1", "/" + good, good + "/", good + "x", good[1:],
		strings.Replace(good, "v1", "v2", 1),
		strings.Replace(good, "/t/", "//", 1),
		strings.Replace(good, "/t/", "/t/u/", 1),
		strings.Replace(good, "segments", "blocks", 1),
		strings.Replace(good, "T1400Z", "T1500Z", 1),
		strings.Replace(good, ".parquet", "", 1),
		strings.Replace(good, ".parquet", ".json", 1),
		strings.Replace(good, "01K1", "01k1", 1), // another spelling of the same ULID
		strings.Replace(good, "01K1", "81K1", 1), // more than 128 bits
		strings.Replace(good, "01K1", "01U1", 1), // not in the alphabet
		strings.Replace(good, "01K1", "01K", 1),
	} {
		_, err := key.ParseSegment(k)
		assert.ErrorIs(t, err, key.ErrSyntax, "%q", k)
	}
}

// TestOrder: keys of a tenant sort by window, then by the time of writing.
func TestOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var segments []key.Segment
	for range 2000 {
		at := key.MinTime + rng.Int64N(key.MaxTime-key.MinTime+1)
		if len(segments)%2 == 1 { // often two in one window
			at = int64(segments[len(segments)-1].Window)
		}
		var id ulid.ULID
		require.NoError(t, id.SetTime(rng.Uint64N(ulid.MaxTime())))
		id[15] = byte(rng.Uint32())
		segments = append(segments, key.Segment{Tenant: "t", Window: key.WindowOf(at), ID: id})
	}
	byMeaning := slices.SortedFunc(slices.Values(segments), func(a, b key.Segment) int {
		if a.Window != b.Window {
			return int(max(-1, min(1, int64(a.Window)-int64(b.Window))))
		}
		return a.ID.Compare(b.ID)
	})
	byText := slices.SortedFunc(slices.Values(segments), func(a, b key.Segment) int { return strings.Compare(a.String(), b.String()) })
	assert.Equal(t, byMeaning, byText)
}

func FuzzWindow(f *testing.F) {
	for _, t := range []int64{0, -1, 1, key.MinTime, key.MaxTime, 1_753_977_599_999, math.MinInt32} {
		f.Add(t)
	}
	f.Fuzz(func(t *testing.T, at int64) {
		if at < key.MinTime || at > key.MaxTime {
			t.Skip("outside of the grammar")
		}
		w := key.WindowOf(at)
		require.LessOrEqual(t, int64(w), at)
		require.Greater(t, w.End(), at)
		require.Len(t, w.String(), len("20060102T1504Z"))
		back, err := key.ParseWindow(w.String())
		require.NoError(t, err)
		require.Equal(t, w, back)
	})
}

// FuzzParseSegment: a key that parses is built again identically.
func FuzzParseSegment(f *testing.F) {
	f.Add("v1/t/segments/20250731T1400Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9.parquet")
	f.Add("v1/t/segments/00000101T0000Z/00000000000000000000000000.parquet")
	f.Add("v1/t/segments/99991231T2200Z/7ZZZZZZZZZZZZZZZZZZZZZZZZZ.parquet")
	f.Add("v1/t/segments/20250731T1400Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9.json")
	f.Add("v1//segments//.parquet")
	f.Fuzz(func(t *testing.T, k string) {
		s, err := key.ParseSegment(k)
		if err != nil {
			require.ErrorIs(t, err, key.ErrSyntax)
			return
		}
		require.Equal(t, k, s.String())
	})
}
