package catalog_test

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

const w = key.WindowMillis

// t0 is when the tests' world begins: the start of a day.
var t0 = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// win is the n-th 2h window after t0.
func win(n int) key.Window { return key.Window(t0.UnixMilli() + int64(n)*w) }

// id is a ULID of d after t0.
func id(d time.Duration, tail ...byte) (u ulid.ULID) {
	if err := u.SetTime(uint64(t0.Add(d).UnixMilli())); err != nil {
		panic(err)
	}
	copy(u[16-len(tail):], tail)
	return u
}

// sid is a segment of the n-th window, written d after t0.
func sid(n int, d time.Duration) catalog.SegmentID {
	return catalog.SegmentID{Window: win(n), ID: id(d)}
}

// blk is a block of the n-th window, whose job began d after t0 and whose newest source is of rank.
func blk(l key.Level, n int, d, rank time.Duration) catalog.Block {
	return catalog.Block{
		Level: l, Window: win(n), ID: id(d, 1), Rank: id(rank), MinT: int64(win(n)), MaxT: int64(win(n)) + 1000,
		Series: 3, Samples: 30, Bytes: 300,
	}
}

func segments(ids ...catalog.SegmentID) catalog.Sources { return catalog.Sources{Segments: ids} }

func blocks(bs ...catalog.Block) (s catalog.Sources) {
	for _, b := range bs {
		s.Blocks = append(s.Blocks, b.BlockID())
	}
	return s
}

func at(d time.Duration) time.Time { return t0.Add(d) }

// job is up{job="a"}, as matchers.
var job = []catalog.Matcher{{Type: "=", Name: "__name__", Value: "up"}, {Type: "=", Name: "job", Value: "a"}}

// chain applies changes to the empty manifest, one commit each, a second apart.
func chain(t *testing.T, changes ...catalog.Change) catalog.Manifest {
	t.Helper()
	m := catalog.Empty()
	for _, change := range changes {
		next, err := change(m, at(0))
		require.NoError(t, err)
		next.Parent, next.Generation, next.ID = m.ID, m.Generation+1, id(time.Duration(m.Generation+1)*time.Second)
		_, err = catalog.Encode(next)
		require.NoError(t, err)
		m = next
	}
	return m
}

func replace(d time.Duration, s catalog.Sources, outputs ...catalog.Block) catalog.Change {
	return func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) { return m.Replace(at(d), s, outputs) }
}

func del(d time.Duration, mint, maxt int64) catalog.Change {
	return func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m, _, err := m.Delete(at(d), catalog.Tombstone{Matchers: job, MinT: mint, MaxT: maxt}, nil)
		return m, err
	}
}

func begin(d time.Duration, sp catalog.Split) catalog.Change {
	return func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) { return m.BeginSplit(at(d), sp) }
}

func slice(d time.Duration, split ulid.ULID, b catalog.Block) catalog.Change {
	return func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) { return m.SliceDone(at(d), split, b) }
}

// sliced makes b a slice.
func sliced(b catalog.Block, i, of int) catalog.Block {
	b.Slice = catalog.Slice{Index: i, Of: of}
	b.ID[15] += byte(i)
	return b
}

func parse(t *testing.T, s string) labels.Labels {
	t.Helper()
	l, err := parser.NewParser(parser.Options{}).ParseMetric(s)
	require.NoError(t, err)
	return l
}
