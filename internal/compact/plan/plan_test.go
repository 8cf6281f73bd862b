package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/compacttest"
)

// Tests tell the time as those of the stage do.
var (
	day   = compacttest.Day
	clock = compacttest.Clock
	idAt  = compacttest.ID
)

// usual returns the policy with defaults: those of the stage, for jobs of fifteen minutes.
func usual(p Policy) Policy {
	settings.Fill(&p)
	if p.MaxJobSamples == 0 {
		p.MaxJobSamples = 450_000_000
	}
	return p
}

// scene builds a snapshot. Windows are given by their hour.
type scene struct {
	snap  catalog.Snapshot
	taken int
}

func newScene() *scene { return &scene{snap: catalog.Snapshot{Tenant: "t", Manifest: catalog.Empty()}} }

func (s *scene) n() byte {
	s.taken++
	return byte(s.taken)
}

// segments adds n segments of 100 bytes for the 2h window that begins at the hour, written one
// second apart.
func (s *scene) segments(hour, n int, written string) *scene {
	return s.sized(hour, n, written, 100)
}

func (s *scene) sized(hour, n int, written string, bytes int64) *scene {
	for i := range n {
		id := idAt(clock(written).Add(time.Duration(i)*time.Second), s.n())
		w := key.Window(day.Add(time.Duration(hour) * time.Hour).UnixMilli())
		s.snap.Segments = append(s.snap.Segments, catalog.SegmentRef{Segment: key.Segment{Tenant: "t", Window: w, ID: id}, Size: bytes, Rank: id})
	}
	return s
}

// block adds a block of that number of samples in ten series. Its newest source was written at that
// time.
func (s *scene) block(l key.Level, hour int, written string, samples int64) *scene {
	from := day.Add(time.Duration(hour) * time.Hour).UnixMilli()
	b := catalog.Block{
		Level: l, Window: l.WindowOf(from), ID: idAt(clock(written), 100+s.n()), Rank: idAt(clock(written), s.n()), MinT: from, MaxT: from + 7_000_000,
		Series: 10, Samples: samples, Bytes: samples,
	}
	s.snap.Blocks = append(s.snap.Blocks, b)
	return s
}

// slices adds the blocks of a finished split into n.
func (s *scene) slices(l key.Level, hour, n int, written string, samples int64) *scene {
	for i := range n {
		s.block(l, hour, written, samples)
		b := &s.snap.Blocks[len(s.snap.Blocks)-1]
		b.Slice, b.Rank = catalog.Slice{Index: i, Of: n}, idAt(clock(written), 0)
	}
	return s
}

// last changes the block that was added last.
func (s *scene) last(f func(b *catalog.Block)) *scene {
	f(&s.snap.Blocks[len(s.snap.Blocks)-1])
	return s
}

// tombstone deletes from the whole of what was written before.
func (s *scene) tombstone(at string) *scene {
	t := catalog.Tombstone{ID: idAt(clock(at), 255), Matchers: []catalog.Matcher{{Type: "=", Name: "a", Value: "b"}}, MinT: 0, MaxT: key.MaxTime}
	s.snap.Manifest.Tombstones = append(s.snap.Manifest.Tombstones, t)
	s.snap.Manifest.LastTombstone = t.ID
	return s
}

// split records a split of everything in the window, with the given slices done.
func (s *scene) split(l key.Level, hour, of int, done ...int) *scene {
	w := l.WindowOf(day.Add(time.Duration(hour) * time.Hour).UnixMilli())
	var srcs []Source
	for _, x := range live(&s.snap) {
		if spanOf(l, w).holds(x.span) {
			srcs = append(srcs, x)
		}
	}
	sp := catalog.Split{ID: idAt(clock("23:59"), s.n()), Level: l, Window: w, Of: of, Sources: SourcesOf(srcs)}
	for _, i := range done {
		sp.Done = append(sp.Done, catalog.Block{Level: l, Window: w, ID: idAt(clock("23:59"), s.n()), Slice: catalog.Slice{Index: i, Of: of}, Rank: srcs[len(srcs)-1].Rank})
	}
	s.snap.Manifest.Splits = append(s.snap.Manifest.Splits, sp)
	return s
}

// done returns the snapshot, in order.
func (s *scene) done() catalog.Snapshot {
	s.cover()
	slices.SortFunc(s.snap.Segments, func(a, b catalog.SegmentRef) int { return a.ID.Compare(b.ID) })
	slices.SortFunc(s.snap.Blocks, func(a, b catalog.Block) int { return a.Rank.Compare(b.Rank) })
	s.snap.Manifest.Blocks = s.snap.Blocks
	s.snap.Tombstones = s.snap.Manifest.Tombstones
	return s.snap
}

// cover lets each tombstone apply to what was written before its identifier's time.
func (s *scene) cover() {
	m := &s.snap.Manifest
	m.Sealed = nil
	through := func(through, rank ulid.ULID) ulid.ULID {
		for _, t := range m.Tombstones {
			if t.ID.Compare(rank) <= 0 && t.ID.Compare(through) > 0 {
				through = t.ID
			}
		}
		return through
	}
	for i := range s.snap.Segments {
		seg := &s.snap.Segments[i]
		seg.DeletesThrough = through(ulid.ULID{}, seg.Rank)
		for _, t := range m.Tombstones {
			if t.Covers(seg.DeletesThrough) && t.Overlaps(int64(seg.Window), seg.Window.End()-1) {
				m.Sealed = append(m.Sealed, catalog.Sealed{SegmentID: seg.SegmentID(), By: t.ID})
				break
			}
		}
	}
	for i := range s.snap.Blocks {
		s.snap.Blocks[i].DeletesThrough = through(s.snap.Blocks[i].DeletesThrough, s.snap.Blocks[i].Rank)
	}
}

func TestPlan(t *testing.T) {
	const p, h2, h12, h24 = key.Part, key.L2h, key.L12h, key.L24h
	for _, tc := range []struct {
		name   string
		now    string
		policy Policy
		make   *scene
		want   []string
	}{
		{"nothing", "12:00", Policy{}, newScene(), nil},

		// Open windows.
		{"few segments wait", "01:00", Policy{}, newScene().segments(0, 7, "00:30"), nil},
		{"enough segments", "01:00", Policy{}, newScene().segments(0, 8, "00:30"),
			[]string{"merge part 20260301T0000Z of 8 segments, 0 blocks (800 bytes): segments wait"}},
		{"few large segments", "01:00", Policy{}, newScene().sized(0, 2, "00:30", 4<<20),
			[]string{"merge part 20260301T0000Z of 2 segments, 0 blocks (8388608 bytes): segments wait"}},
		{"one large segment", "01:00", Policy{}, newScene().sized(0, 1, "00:30", 64<<20), nil},
		{"unsettled segments", "00:30", Policy{}, newScene().segments(0, 8, "00:30"), nil},
		{"settled to the second", "00:31", Policy{SettleDelay: time.Minute}, newScene().segments(0, 9, "00:29").segments(0, 9, "00:30"),
			[]string{"merge part 20260301T0000Z of 10 segments, 0 blocks (1000 bytes): segments wait"}},
		{"batches", "01:00", Policy{MaxSegments: 64}, newScene().segments(0, 140, "00:30"), []string{
			"merge part 20260301T0000Z of 64 segments, 0 blocks (6400 bytes): segments wait",
			"merge part 20260301T0000Z of 64 segments, 0 blocks (6400 bytes): segments wait",
			"merge part 20260301T0000Z of 12 segments, 0 blocks (1200 bytes): segments wait",
		}},
		{"a rest that is too small", "01:00", Policy{MaxSegments: 64}, newScene().segments(0, 70, "00:30"),
			[]string{"merge part 20260301T0000Z of 64 segments, 0 blocks (6400 bytes): segments wait"}},
		{"segments wait for their age", "00:34", Policy{PartAge: 5 * time.Minute}, newScene().segments(0, 100, "00:30").sized(0, 2, "00:31", 64<<20), nil},
		{"segments of an age", "00:35", Policy{PartAge: 5 * time.Minute}, newScene().segments(0, 1, "00:30").segments(0, 2, "00:33"),
			[]string{"merge part 20260301T0000Z of 3 segments, 0 blocks (300 bytes): segments wait"}},
		{"segments from before", "00:33", Policy{PartAge: 5 * time.Minute, PartFrom: clock("00:31")}, newScene().segments(0, 1, "00:30").segments(0, 7, "00:31"),
			[]string{"merge part 20260301T0000Z of 8 segments, 0 blocks (800 bytes): segments wait"}},
		{"few segments from before", "00:33", Policy{PartAge: 5 * time.Minute, PartFrom: clock("00:31")}, newScene().segments(0, 1, "00:30").segments(0, 6, "00:31"), nil},
		{"few segments from before, of an age", "00:35", Policy{PartAge: 5 * time.Minute, PartFrom: clock("00:31")}, newScene().segments(0, 1, "00:30").segments(0, 6, "00:31"),
			[]string{"merge part 20260301T0000Z of 7 segments, 0 blocks (700 bytes): segments wait"}},
		{"segments since then", "00:33", Policy{PartAge: 5 * time.Minute, PartFrom: clock("00:30")}, newScene().segments(0, 8, "00:30"), nil},
		{"a lone segment of an age", "00:35", Policy{PartAge: 5 * time.Minute}, newScene().segments(0, 1, "00:30"), nil},
		{"as many as wait at most", "00:45", Policy{PartAge: time.Hour}, newScene().segments(0, 511, "00:30"), nil},
		{"more than wait at most", "00:45", Policy{PartAge: time.Hour}, newScene().segments(0, 512, "00:30"),
			[]string{"merge part 20260301T0000Z of 512 segments, 0 blocks (51200 bytes): segments wait"}},
		{"each window for itself", "03:00", Policy{}, newScene().segments(2, 8, "02:30").segments(4, 8, "02:31"), []string{
			"merge part 20260301T0200Z of 8 segments, 0 blocks (800 bytes): segments wait",
			"merge part 20260301T0400Z of 8 segments, 0 blocks (800 bytes): segments wait",
		}},
		{"a part between segments", "01:00", Policy{}, newScene().segments(0, 5, "00:10").block(p, 0, "00:20", 500).segments(0, 5, "00:30"), nil},
		{"parts of one size", "01:00", Policy{}, parts(8, 500), []string{"merge part 20260301T0000Z of 0 segments, 8 blocks (4000 bytes): parts of similar size"}},
		{"seven parts", "01:00", Policy{}, parts(7, 500), nil},
		{"a large part and small ones", "01:00", Policy{}, newScene().block(p, 0, "00:00", 9000).add(parts(8, 500)),
			[]string{"merge part 20260301T0000Z of 0 segments, 8 blocks (4000 bytes): parts of similar size"}},
		{"a large part and some more", "01:00", Policy{}, newScene().block(p, 0, "00:00", 9000).add(parts(7, 500)), nil},
		{"future samples", "01:00", Policy{}, newScene().segments(48, 8, "00:30"),
			[]string{"merge part 20260303T0000Z of 8 segments, 0 blocks (800 bytes): segments wait"}},

		// 2h blocks.
		{"not before the delay", "02:09", Policy{}, newScene().segments(0, 7, "00:30"), nil},
		{"closed window", "02:10", Policy{}, newScene().segments(0, 7, "00:30").block(p, 0, "00:20", 500),
			[]string{"merge 2h 20260301T0000Z of 7 segments, 1 block (1200 bytes): window is closed"}},
		{"a lone segment", "02:10", Policy{}, newScene().segments(0, 1, "00:30"),
			[]string{"merge 2h 20260301T0000Z of 1 segment, 0 blocks (100 bytes): window is closed"}},
		{"a lone 2h block", "02:10", Policy{}, newScene().block(h2, 0, "00:30", 100), nil},
		{"unsettled ones are left out", "02:10", Policy{}, newScene().segments(0, 3, "00:30").segments(0, 2, "02:09"),
			[]string{"merge 2h 20260301T0000Z of 4 segments, 0 blocks (400 bytes): window is closed"}},
		{"parts first", "02:10", Policy{MaxSegments: 64}, newScene().segments(0, 130, "00:30"), []string{
			"merge part 20260301T0000Z of 64 segments, 0 blocks (6400 bytes): more sources than one job takes",
			"merge part 20260301T0000Z of 64 segments, 0 blocks (6400 bytes): more sources than one job takes",
			"merge part 20260301T0000Z of 2 segments, 0 blocks (200 bytes): more sources than one job takes",
		}},
		{"late segments wait", "03:00", Policy{}, newScene().block(h2, 0, "01:59", 100).segments(0, 2, "02:51"), nil},
		{"late segments have waited", "03:01", Policy{}, newScene().block(h2, 0, "01:59", 100).segments(0, 2, "02:51").segments(0, 1, "02:59"),
			[]string{"merge 2h 20260301T0000Z of 3 segments, 1 block (400 bytes): late data"}},
		{"many late segments become a part", "03:00", Policy{}, newScene().block(h2, 0, "01:59", 100).segments(0, 9, "02:51"),
			[]string{"merge part 20260301T0000Z of 9 segments, 0 blocks (900 bytes): segments wait"}},
		{"samples of the past wait too", "08:00", Policy{}, newScene().segments(0, 2, "07:55"), nil},
		{"samples of the past have waited", "08:05", Policy{}, newScene().segments(0, 2, "07:55"),
			[]string{"merge 2h 20260301T0000Z of 2 segments, 0 blocks (200 bytes): window is closed"}},

		// 12h and 24h blocks.
		{"12h is not over", "12:09", Policy{}, blocks2h(0, 5).segments(10, 2, "11:00"), nil},
		{"12h is over", "12:10", Policy{}, blocks2h(0, 5).segments(10, 2, "11:00"),
			[]string{"merge 12h 20260301T0000Z of 2 segments, 5 blocks (700 bytes): window is closed"}},
		{"windows without data", "12:10", Policy{}, blocks2h(4, 1),
			[]string{"merge 12h 20260301T0000Z of 0 segments, 1 block (100 bytes): window is closed"}},
		{"a lone 12h block", "13:00", Policy{}, newScene().block(h12, 0, "12:00", 100), nil},
		{"24h is over", "24:10", Policy{}, newScene().block(h12, 0, "12:00", 1000).add(blocks2h(12, 6)),
			[]string{"merge 24h 20260301T0000Z of 0 segments, 7 blocks (1600 bytes): window is closed"}},
		{"a lone 12h block of a day that is over", "24:10", Policy{}, newScene().block(h12, 0, "12:00", 1000),
			[]string{"merge 24h 20260301T0000Z of 0 segments, 1 block (1000 bytes): window is closed"}},
		{"a day that is done", "30:00", Policy{}, newScene().block(h24, 0, "24:00", 1000), nil},
		{"two days", "48:10", Policy{}, newScene().block(h24, 0, "24:00", 1000).segments(24, 3, "25:00"),
			[]string{"merge 24h 20260302T0000Z of 3 segments, 0 blocks (300 bytes): window is closed"}},
		{"late for a day: wait", "30:00", Policy{}, newScene().block(h24, 0, "24:00", 1000).segments(4, 3, "29:55"), nil},
		{"late for a day", "30:05", Policy{}, newScene().block(h24, 0, "24:00", 1000).segments(4, 3, "29:55").segments(8, 1, "30:00"),
			[]string{"merge 24h 20260301T0000Z of 4 segments, 1 block (1400 bytes): late data"}},
		{"late for 12h", "15:05", Policy{}, newScene().block(h12, 0, "12:00", 1000).segments(4, 3, "14:55"),
			[]string{"merge 12h 20260301T0000Z of 3 segments, 1 block (1300 bytes): late data"}},
		{"very much is late for a day", "30:30", Policy{MaxSources: 8, MaxSegments: 8}, newScene().block(h24, 0, "24:00", 1000).segments(4, 9, "29:55").segments(8, 3, "29:56"), []string{
			"merge part 20260301T0400Z of 8 segments, 0 blocks (800 bytes): more sources than one job takes",
			"merge part 20260301T0800Z of 3 segments, 0 blocks (300 bytes): more sources than one job takes",
		}},
		{"catching up with a day", "30:30", Policy{MaxSources: 8, MaxSegments: 8}, newScene().segments(0, 5, "01:00").segments(2, 6, "03:00").segments(12, 10, "13:00"), []string{
			"merge 2h 20260301T0000Z of 5 segments, 0 blocks (500 bytes): window is closed",
			"merge 2h 20260301T0200Z of 6 segments, 0 blocks (600 bytes): window is closed",
			"merge part 20260301T1200Z of 8 segments, 0 blocks (800 bytes): more sources than one job takes",
			"merge part 20260301T1200Z of 2 segments, 0 blocks (200 bytes): more sources than one job takes",
		}},
		{"catching up with a day of many small segments", "30:30", Policy{}, newScene().segments(0, 900, "01:00").segments(12, 900, "13:00"),
			[]string{"merge 24h 20260301T0000Z of 1800 segments, 0 blocks (180000 bytes): window is closed"}},
		{"catching up with a day of more bytes than fit", "30:30", Policy{MemoryBytes: 560}, newScene().segments(0, 5, "01:00").segments(2, 6, "03:00").segments(12, 10, "13:00"), []string{
			"merge 12h 20260301T0000Z of 11 segments, 0 blocks (1100 bytes): window is closed",
			"merge 12h 20260301T1200Z of 10 segments, 0 blocks (1000 bytes): window is closed",
		}},
		{"catching up with a window of more bytes than fit", "30:30", Policy{MemoryBytes: 400}, newScene().segments(12, 10, "13:00"), []string{
			"merge part 20260301T1200Z of 8 segments, 0 blocks (800 bytes): more sources than one job takes",
			"merge part 20260301T1200Z of 2 segments, 0 blocks (200 bytes): more sources than one job takes",
		}},
		{"catching up with a short day", "30:30", Policy{}, newScene().segments(0, 5, "01:00").segments(2, 6, "03:00").segments(12, 10, "13:00"),
			[]string{"merge 24h 20260301T0000Z of 21 segments, 0 blocks (2100 bytes): window is closed"}},

		// Deletions.
		{"a deletion rewrites", "30:00", Policy{}, newScene().block(h24, 0, "24:00", 1000).tombstone("29:00"),
			[]string{"merge 24h 20260301T0000Z of 0 segments, 1 block (1000 bytes): deletions"}},
		{"a deletion that is applied is dropped", "30:00", Policy{},
			newScene().block(h24, 0, "24:00", 1000).last(func(b *catalog.Block) { b.DeletesThrough = idAt(clock("29:00"), 255) }).tombstone("29:00"),
			[]string{"drop 1 tombstone: nothing is left that they apply to"}},
		{"a deletion before the block", "30:00", Policy{}, newScene().block(h24, 0, "24:00", 1000).tombstone("23:00"),
			[]string{"drop 1 tombstone: nothing is left that they apply to"}},
		{"a deletion of another time", "30:00", Policy{},
			newScene().block(h24, 0, "24:00", 1000).tombstone("29:00").deleting(func(t *catalog.Tombstone) { t.MaxT = 5 }),
			[]string{"drop 1 tombstone: nothing is left that they apply to"}},
		{"what comes later is not covered", "30:00", Policy{}, newScene().tombstone("30:00"), []string{"drop 1 tombstone: nothing is left that they apply to"}},
		{"a deletion waits for the segments", "01:00", Policy{}, newScene().segments(0, 1, "00:20").tombstone("00:30"), nil},
		{"a deletion does not wait for late data", "30:00", Policy{}, newScene().block(h24, 0, "24:00", 1000).segments(4, 1, "29:55").tombstone("29:58"),
			[]string{"merge 24h 20260301T0000Z of 1 segment, 1 block (1100 bytes): deletions"}},
		{"a part of an open window keeps", "01:00", Policy{}, newScene().block(p, 0, "00:20", 100).tombstone("00:30"), nil},
		{"a 2h block of an open day", "05:00", Policy{}, blocks2h(0, 2).tombstone("04:30"), []string{
			"merge 2h 20260301T0000Z of 0 segments, 1 block (100 bytes): deletions",
			"merge 2h 20260301T0200Z of 0 segments, 1 block (100 bytes): deletions",
		}},

		// Retention.
		{"retention", "48:00", Policy{Retention: 24 * time.Hour}, newScene().segments(-24, 2, "00:10").block(h24, -24, "00:00", 100).block(h24, 0, "24:00", 1000),
			[]string{"expire of 2 segments, 2 blocks (1300 bytes): older than the retention of 24h0m0s"}},
		{"retention goes by the newest sample", "48:00", Policy{Retention: 24 * time.Hour},
			newScene().block(h24, 0, "24:00", 1000).last(func(b *catalog.Block) { b.MaxT = clock("24:00").UnixMilli() }), nil},
		{"retention of another tenant", "48:00", Policy{TenantRetention: map[string]time.Duration{"u": time.Hour}}, newScene().block(h24, 0, "24:00", 1000), nil},
		{"retention of this tenant", "48:00", Policy{TenantRetention: map[string]time.Duration{"t": time.Hour}}, newScene().block(h24, 0, "24:00", 1000),
			[]string{"expire of 0 segments, 1 block (1000 bytes): older than the retention of 1h0m0s"}},
		{"this tenant keeps for ever", "480:00", Policy{Retention: time.Hour, TenantRetention: map[string]time.Duration{"t": 0}}, newScene().block(h24, 0, "24:00", 1000), nil},
		{"a deletion outlives what is only about to expire", "48:00", Policy{Retention: time.Hour}, newScene().block(h24, 0, "24:00", 1000).tombstone("40:00"),
			[]string{"expire of 0 segments, 1 block (1000 bytes): older than the retention of 1h0m0s"}},

		// Splits.
		{"too many samples", "24:10", Policy{MaxJobSamples: 1000}, newScene().block(h12, 0, "12:00", 2000).block(h12, 12, "24:00", 1500),
			[]string{"split 24h 20260301T0000Z into 4 of 0 segments, 2 blocks (3500 bytes): window is closed"}},
		{"too many series", "24:10", Policy{MemoryBytes: 64 << 20}, newScene().block(h12, 0, "12:00", 2000).last(func(b *catalog.Block) { b.Series = 250_000 }),
			[]string{"split 24h 20260301T0000Z into 2 of 0 segments, 1 block (2000 bytes): window is closed"}},
		{"a part is never split", "01:00", Policy{MaxJobSamples: 1}, newScene().segments(0, 8, "00:30"),
			[]string{"merge part 20260301T0000Z of 8 segments, 0 blocks (800 bytes): segments wait"}},
		{"missing slices", "30:00", Policy{MaxJobSamples: 1000}, newScene().block(h12, 0, "12:00", 2000).block(h12, 12, "24:00", 1500).split(h24, 0, 4, 0, 2).segments(4, 9, "29:00"), []string{
			"slice 1 of 4, 24h 20260301T0000Z of 0 segments, 2 blocks (3500 bytes): the whole is too large for one job",
			"slice 3 of 4, 24h 20260301T0000Z of 0 segments, 2 blocks (3500 bytes): the whole is too large for one job",
		}},
		{"a split of one window", "05:00", Policy{MaxJobSamples: 1000}, newScene().block(p, 0, "01:00", 2000).block(p, 0, "01:30", 2000).split(h2, 0, 2, 1).segments(2, 3, "03:00"), []string{
			"slice 0 of 2, 2h 20260301T0000Z of 0 segments, 2 blocks (4000 bytes): the whole is too large for one job",
			"merge 2h 20260301T0200Z of 3 segments, 0 blocks (300 bytes): window is closed",
		}},
		{"slices are done", "30:00", Policy{MaxJobSamples: 1000}, newScene().slices(h24, 0, 4, "24:00", 800), nil},
		{"late for slices", "30:00", Policy{MaxJobSamples: 1000}, newScene().slices(h24, 0, 4, "24:00", 800).segments(4, 1, "29:00"),
			[]string{"split 24h 20260301T0000Z into 4 of 1 segment, 4 blocks (3300 bytes): late data"}},
		{"slices count as one source", "30:00", Policy{MaxJobSamples: 1000, MaxSources: 2}, newScene().slices(h24, 0, 4, "24:00", 800).segments(4, 1, "29:00"),
			[]string{"split 24h 20260301T0000Z into 4 of 1 segment, 4 blocks (3300 bytes): late data"}},
		{"a split waits with retention", "72:00", Policy{Retention: time.Hour}, newScene().block(h12, 0, "12:00", 2000).split(h24, 0, 2, 0),
			[]string{"slice 1 of 2, 24h 20260301T0000Z of 0 segments, 1 block (2000 bytes): the whole is too large for one job"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, j := range Jobs(usual(tc.policy), clock(tc.now), tc.make.done()) {
				got = append(got, j.String())
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

// parts are n parts of the first window.
func parts(n int, samples int64) *scene {
	s := newScene()
	for i := range n {
		s.block(key.Part, 0, fmt.Sprintf("00:%d", 10+i), samples)
	}
	return s
}

// blocks2h are n 2h blocks of successive windows.
func blocks2h(hour, n int) *scene {
	s := newScene()
	for i := range n {
		s.block(key.L2h, hour+2*i, fmt.Sprintf("%d:0", hour+2*i+2), 100)
	}
	return s
}

// add takes over the objects of another scene.
func (s *scene) add(o *scene) *scene {
	s.snap.Segments = append(s.snap.Segments, o.snap.Segments...)
	s.snap.Blocks = append(s.snap.Blocks, o.snap.Blocks...)
	return s
}

func (s *scene) deleting(f func(*catalog.Tombstone)) *scene {
	f(&s.snap.Manifest.Tombstones[len(s.snap.Manifest.Tombstones)-1])
	return s
}

// TestPlanHoldsItsRules checks plans of random snapshots: they are the same each time, no two jobs
// share a source, the sources of each merge are closed, and whatever is planned is taken from what
// is live.
func TestPlanHoldsItsRules(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		snap, now := randomScene(r), clock(fmt.Sprintf("%d:%d", r.IntN(60), r.IntN(60)))
		policy := usual(Policy{MaxSources: 2 + r.IntN(10), MaxSegments: 2 + r.IntN(10), MinPartSegments: 2 + r.IntN(6), MaxJobSamples: 1 + r.Int64N(5000), Retention: time.Duration(r.IntN(40)) * time.Hour})
		jobs := Jobs(policy, now, snap)
		shuffled := snap
		shuffled.Segments = slices.Clone(snap.Segments)
		r.Shuffle(len(shuffled.Segments), func(i, j int) {
			shuffled.Segments[i], shuffled.Segments[j] = shuffled.Segments[j], shuffled.Segments[i]
		})
		require.Equal(t, jobs, Jobs(policy, now, shuffled), "seed %d", seed)
		all := live(&snap)
		used := map[string]bool{}
		for _, j := range jobs {
			var srcs []Source
			for _, s := range all {
				if slices.Contains(j.Sources.Segments, s.Segment) && s.IsSegment || !s.IsSegment && slices.Contains(j.Sources.Blocks, s.Block.BlockID()) {
					srcs = append(srcs, s)
					id := s.id().String() + j.Slice.String()
					require.False(t, used[id], "seed %d: %s takes a source twice", seed, j)
					used[id] = true
				}
			}
			require.Len(t, srcs, j.Sources.Len(), "seed %d: %s", seed, j)
			if j.Kind != Merge && j.Kind != Split {
				continue
			}
			require.True(t, closedSet(srcs, all), "seed %d: %s", seed, j)
			require.LessOrEqual(t, len(j.Sources.Blocks), policy.MaxSources, "seed %d: %s", seed, j)
			require.LessOrEqual(t, len(j.Sources.Segments), policy.MaxSegments, "seed %d: %s", seed, j)
			for _, s := range srcs {
				require.True(t, spanOf(j.Level, j.Window).holds(s.span), "seed %d: %s", seed, j)
				require.False(t, s.IsSegment && ulid.Time(s.Segment.ID.Time()).After(now.Add(-policy.SettleDelay)), "seed %d: %s", seed, j)
			}
		}
	}
}

func randomScene(r *rand.Rand) catalog.Snapshot {
	s := newScene()
	at := func() string { return fmt.Sprintf("%d:%d", r.IntN(48), r.IntN(60)) }
	for range r.IntN(12) {
		switch hour := 2 * r.IntN(24); r.IntN(5) {
		case 0, 1:
			s.segments(hour, 1+r.IntN(20), at())
		case 2:
			s.block(key.Part, hour, at(), 1+r.Int64N(1000))
		case 3:
			s.block(key.L2h, hour, at(), 1+r.Int64N(1000))
		case 4:
			s.block([]key.Level{key.L12h, key.L24h}[r.IntN(2)], hour, at(), 1+r.Int64N(1000))
		}
	}
	if r.IntN(3) == 0 {
		s.tombstone(at())
	}
	if r.IntN(4) == 0 && len(s.snap.Blocks) > 0 {
		b := s.snap.Blocks[0]
		s.split(b.Level, int((int64(b.Window)-day.UnixMilli())/time.Hour.Milliseconds()), 4, 1)
	}
	return s.done()
}

func TestJobString(t *testing.T) {
	for _, j := range []Job{{Kind: Merge}, {Kind: Split}, {Kind: Cut}, {Kind: Expire}, {Kind: Drop}} {
		require.True(t, strings.HasPrefix(j.String(), j.Kind.String()), j.String())
	}
}

// TestArrived: of what is written, only what senders wrote counts; results of rules are in the
// store without the queue, and compaction writes nothing new.
func TestArrived(t *testing.T) {
	queued := func(s *scene) *scene {
		s.snap.Segments[len(s.snap.Segments)-1].Queued = true
		return s
	}
	consumed := func(s *scene, at string) *scene {
		s.snap.Manifest.Consumed = append(s.snap.Manifest.Consumed, catalog.Consumed{SegmentID: catalog.SegmentID{ID: idAt(clock(at), s.n()), Queued: true}})
		return s
	}
	for name, tc := range map[string]struct {
		scene        *scene
		direct, want string // clock; "": never
	}{
		"nothing":                    {newScene(), "", ""},
		"a sender":                   {queued(newScene().segments(2, 1, "2:10")), "2:10", "2:10"},
		"then rules":                 {queued(newScene().segments(2, 1, "3:50")).segments(2, 3, "3:57"), "3:57", "3:50"},
		"a sender that was merged":   {consumed(newScene().block(key.Part, 2, "3:58", 10), "3:55"), "3:58", "3:55"},
		"rules alone, for some time": {newScene().segments(2, 1, "3:58"), "3:58", "3:45"},
		"nothing for long":           {newScene().block(key.L2h, 0, "1:10", 10), "1:10", "1:10"},
	} {
		for mode, want := range map[bool]string{false: tc.direct, true: tc.want} {
			got := Arrived(mode, clock("4:00"), tc.scene.done())
			if want == "" {
				require.Zero(t, got, name)
				continue
			}
			require.Equal(t, clock(want), got.UTC().Truncate(time.Minute), "%s, queued: %v", name, mode)
		}
	}
}
