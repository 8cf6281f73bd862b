package recent_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/recenttest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// clock is a time that tests move.
type clock struct{ t time.Time }

// of returns the content of rows.
func of(t *testing.T, s *recent.Segments, rows []segment.Row) *recent.Segment {
	t.Helper()
	b := batch(t, rows)
	return s.Of(b, recent.NewLabels(b.View))
}

func (c *clock) now() time.Time { return c.t }

func batch(t *testing.T, rows []segment.Row, metadata ...segment.Metadata) *segment.Batch {
	t.Helper()
	b, err := segmenttest.Batch(rows, metadata)
	require.NoError(t, err)
	return b
}

func scrape(n int, at int64) (rows []segment.Row) {
	for i := range n {
		rows = append(rows, segment.Row{Labels: labels.FromStrings("__name__", "m", "i", string(rune('a'+i))), Floats: []segment.Float{{T: at + int64(i), V: float64(i)}}})
	}
	return rows
}

// TestContentIsThatOfTheObject compares what is kept with what is decoded from the encoded batch.
func TestContentIsThatOfTheObject(t *testing.T) {
	w, err := segment.NewWriter()
	require.NoError(t, err)
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		step := []int64{1, 1000, 60_000, 7_000_000}[r.IntN(4)]
		rows := scrape(r.IntN(20), 1_700_000_000_000)
		var metadata []segment.Metadata
		for i := range rows {
			x := &rows[i]
			for n := range int64(r.IntN(3)) * int64(r.IntN(2)) {
				f := segment.Float{T: x.Floats[0].T + step*(n+1), V: math.Float64frombits(r.Uint64())}
				if seed%3 == 0 {
					f.ST = f.T - 1
				}
				x.Floats = append(x.Floats, f)
			}
			if seed%2 == 0 && r.IntN(3) == 0 {
				x.Floats = nil
				x.Hists = []segment.Hist{{T: 1_700_000_000_000, H: tsdbutil.GenerateTestHistogram(int64(i))}, {T: 1_700_000_000_001, FH: tsdbutil.GenerateTestFloatHistogram(int64(i))}}
				x.Hists[0].H.Sum = math.Copysign(0, -1)
			}
			if seed%5 == 0 {
				x.Exemplars = []exemplar.Exemplar{{Ts: 1_700_000_000_000, Value: math.Copysign(0, -1), Labels: labels.FromStrings("trace", "not UTF-8: \xff")}}
			}
		}
		if seed%4 == 0 {
			metadata = []segment.Metadata{{Metric: "m", Type: "gauge", Help: "not UTF-8: \xfe", Unit: "s"}}
		}
		b := batch(t, rows, metadata...)
		file, _, err := w.Write(b, nil)
		require.NoError(t, err)
		got := recent.New(1<<20, nil, time.Now).Of(b, recent.NewLabels(b.View))
		require.NotNil(t, got)
		recenttest.Equal(t, slices.Clone(file), got)
	}
}

// TestKeepsNothingOfRequests: what follows a flush may not reach what is kept of histograms,
// exemplars and metadata, whose memory belongs to the requests.
func TestKeepsNothingOfRequests(t *testing.T) {
	h := tsdbutil.GenerateTestHistogram(1)
	b := batch(t, []segment.Row{{Labels: labels.FromStrings("__name__", "h"), Hists: []segment.Hist{{T: 5, H: h}}}}, segment.Metadata{Metric: "h"})
	got := recent.New(1<<20, nil, time.Now).Of(b, recent.NewLabels(b.View))
	before := recenttest.Of(t, got)
	h.Count, h.PositiveBuckets[0] = 99, 99
	b.Hists[0].Samples[0].T, b.Metadata[0].Metric = 7, "other"
	require.Equal(t, before, recenttest.Of(t, got))
}

func TestLimit(t *testing.T) {
	c, reg := &clock{t: time.Unix(1000, 0)}, prometheus.NewRegistry()
	s := recent.New(3000, reg, c.now)
	keep := func(key string) {
		s.Put(key, 10, of(t, s, scrape(20, 1)))
	}
	has := func(keys string) {
		t.Helper()
		var got []string
		for _, k := range strings.Split("abcdef", "") {
			if s.Get(k, 10) != nil {
				got = append(got, k)
			}
		}
		require.Equal(t, keys, strings.Join(got, ""))
	}
	for _, k := range strings.Split("abcdef", "") {
		keep(k)
	}
	has("abc") // the oldest stay: they are merged first
	keep("a")
	has("abc")
	s.Remove("b")
	s.Remove("b")
	has("ac")
	c.t = c.t.Add(2 * time.Minute)
	keep("d")
	has("acd")
	c.t = c.t.Add(4 * time.Minute) // a and c are older than five minutes, d is not
	keep("e")
	has("cde")
	keep("f")
	has("def")
	require.LessOrEqual(t, value(t, reg), 3000.0)
	for _, k := range strings.Split("def", "") {
		s.Remove(k)
	}
	require.Zero(t, value(t, reg))
	require.Nil(t, of(t, recent.New(100, nil, c.now), scrape(20, 1)), "larger than the limit")
}

func value(t *testing.T, reg *prometheus.Registry) float64 {
	t.Helper()
	all, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, all, 1)
	return all[0].GetMetric()[0].GetGauge().GetValue()
}

// TestOtherObject: an object of another size is not the one that was kept.
func TestOtherObject(t *testing.T) {
	s := recent.New(1<<20, nil, time.Now)
	s.Put("k", 10, of(t, s, scrape(2, 1)))
	require.NotNil(t, s.Get("k", 10))
	require.Nil(t, s.Get("k", 11))
	require.Nil(t, s.Get("other", 10))
}

func TestNone(t *testing.T) {
	var s *recent.Segments
	require.Nil(t, of(t, s, scrape(2, 1)))
	s.Put("k", 1, nil)
	s.Remove("k")
	require.Nil(t, s.Get("k", 1))
}
