package fuzzpromql

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/recent"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

func now() time.Time { return midnight.Add(24 * time.Hour) }

// lake writes data as the segments and blocks of a tenant. If two objects have a sample at the same
// time, the one written later wins.
type lake struct {
	tb     testing.TB
	store  objstore.Store
	tenant string
	seq    *uint64          // of ids, which order the writes
	kept   *recent.Segments // of the process that writes
}

func (l lake) nextID() (id ulid.ULID) {
	*l.seq++
	require.NoError(l.tb, id.SetTime(uint64(midnight.UnixMilli())+*l.seq))
	return id
}

// layouts are different distributions of the data over objects. None may change an answer. Each is
// a tenant.
var layouts = []struct {
	tenant string
	write  func(l lake, rng *rand.Rand, d data)
}{
	{"segments", func(l lake, rng *rand.Rand, d data) {
		for _, part := range scatter(rng, d, 3) {
			l.segments(part)
		}
	}},
	{"blocks-2h", func(l lake, _ *rand.Rand, d data) { l.blocks(d, block.Options{Level: key.L2h, RowGroupRows: 300}) }},
	{"blocks-24h", func(l lake, _ *rand.Rand, d data) {
		l.blocks(d, block.Options{Level: key.L24h, RowGroupRows: 97, FileBytes: 4 << 10})
	}},
	{"mixture", func(l lake, rng *rand.Rand, d data) {
		parts := scatter(rng, d, 4)
		l.blocks(parts[0], block.Options{Level: key.L24h, RowGroupRows: 150})
		l.segments(parts[1])
		l.blocks(parts[2], block.Options{Level: key.L2h, RowGroupRows: 1000})
		l.segments(parts[3])
	}},
	{"head", func(l lake, rng *rand.Rand, d data) { l.head(rng, d) }},
}

// head writes data as segments in the order of time, as scrapes are stored, so that the process that
// writes them has their samples by series.
func (l lake) head(rng *rand.Rand, d data) {
	l.kept.Head(l.tenant).Begin()
	table := series.NewTable(5)
	view := table.View()
	known := recent.NewLabels(&view)
	for from := int64(math.MinInt64); from < math.MaxInt64; {
		to := int64(math.MaxInt64) // exclusive
		if end := midnight.Add(24 * time.Hour).UnixMilli(); from < end {
			to = max(from, midnight.UnixMilli()) + 1 + rng.Int64N(4*time.Hour.Milliseconds())
		}
		byWindow := windows(d.between(from, to), key.WindowOf)
		for _, w := range slices.Sorted(maps.Keys(byWindow)) {
			id := l.nextID()
			require.NoError(l.tb, compacttest.Put(l.tb.Context(), l.store, l.tenant, w, id, byWindow[w]))
			b, err := segmenttest.BatchIn(table, byWindow[w], nil)
			require.NoError(l.tb, err)
			known.Extend(b.View)
			l.kept.Stored(l.tenant, key.Segment{Tenant: l.tenant, Window: w, ID: id}.String(), l.kept.Of(b, known))
		}
		from = to
	}
}

// between returns the samples in [from, to) (ms).
func (d data) between(from, to int64) (out data) {
	for _, r := range d {
		in := segment.Row{Labels: r.Labels}
		for _, f := range r.Floats {
			if f.T >= from && f.T < to {
				in.Floats = append(in.Floats, f)
			}
		}
		for _, h := range r.Hists {
			if h.T >= from && h.T < to {
				in.Hists = append(in.Hists, h)
			}
		}
		if len(in.Floats)+len(in.Hists) > 0 {
			out = append(out, in)
		}
	}
	return out
}

// scatter divides data over n objects. A series may be missing in some of them, and its samples may
// be in any order of objects. Some samples are in two objects, with a wrong value in the earlier
// one.
func scatter(rng *rand.Rand, d data, n int) []data {
	parts := make([]data, n)
	for _, r := range d {
		of := make([]segment.Row, n)
		run, k := 0, 0
		next := func() int { // runs of samples, as requests have them, or single ones
			if run == 0 {
				run, k = 1+rng.IntN(12), rng.IntN(n)
			}
			run--
			return k
		}
		for _, f := range r.Floats {
			k := next()
			of[k].Floats = append(of[k].Floats, f)
			if k > 0 && rng.IntN(10) == 0 {
				of[k-1].Floats = append(of[k-1].Floats, segment.Float{T: f.T, V: f.V + 1000})
			}
		}
		for _, h := range r.Hists {
			k := next()
			of[k].Hists = append(of[k].Hists, h)
			if k > 0 && rng.IntN(10) == 0 {
				of[k-1].Hists = append(of[k-1].Hists, segment.Hist{T: h.T, FH: tsdbutil.GenerateTestFloatHistogram(999)})
			}
		}
		for k := range of {
			if of[k].Labels = r.Labels; len(of[k].Floats)+len(of[k].Hists) > 0 {
				parts[k] = append(parts[k], of[k])
			}
		}
	}
	return parts
}

// windows divides data by windows.
func windows(d data, windowOf func(int64) key.Window) map[key.Window]data {
	out := map[key.Window]data{}
	for _, r := range d {
		of := map[key.Window]*segment.Row{}
		in := func(t int64) *segment.Row {
			w := windowOf(t)
			if of[w] == nil {
				of[w] = &segment.Row{Labels: r.Labels}
			}
			return of[w]
		}
		for _, f := range r.Floats {
			row := in(f.T)
			row.Floats = append(row.Floats, f)
		}
		for _, h := range r.Hists {
			row := in(h.T)
			row.Hists = append(row.Hists, h)
		}
		for w, row := range of {
			out[w] = append(out[w], *row)
		}
	}
	return out
}

func (l lake) segments(d data) {
	byWindow := windows(d, key.WindowOf)
	for _, w := range slices.Sorted(maps.Keys(byWindow)) {
		require.NoError(l.tb, compacttest.Put(l.tb.Context(), l.store, l.tenant, w, l.nextID(), byWindow[w]))
	}
}

// blocks writes one block for each window of the level.
func (l lake) blocks(d data, o block.Options) {
	byWindow := windows(d, o.Level.WindowOf)
	for _, w := range slices.Sorted(maps.Keys(byWindow)) {
		l.block(byWindow[w], w, o)
	}
}

func (l lake) block(d data, w key.Window, o block.Options) {
	k := key.Block{Tenant: l.tenant, Level: o.Level, Window: w, ID: l.nextID()}
	table := series.NewTable(3)
	byRef := map[series.Ref]*segment.Row{}
	for i := range d {
		var lset []series.Label
		d[i].Labels.Range(func(x labels.Label) { lset = append(lset, series.Label{Name: x.Name, Value: x.Value}) })
		ref, err := table.Intern(lset)
		require.NoError(l.tb, err)
		byRef[ref] = &d[i]
	}
	view := table.View()
	bw, err := block.NewWriter(files{l, k}, &view, o)
	require.NoError(l.tb, err)
	for _, ref := range slices.SortedFunc(maps.Keys(byRef), func(a, b series.Ref) int { return series.ComparePriority(&view, a, b) }) {
		s := &block.Samples{Hists: byRef[ref].Hists}
		for _, f := range byRef[ref].Floats {
			s.TS, s.V = append(s.TS, f.T), append(s.V, f.V)
		}
		require.NoError(l.tb, bw.Append(ref, s))
	}
	rank := l.newestRank()
	m, err := bw.Close(block.Header{Level: o.Level, Window: w, Rank: rank})
	require.NoError(l.tb, err)
	b := catalog.Block{
		Level: o.Level, Window: w, ID: k.ID, Rank: rank, MinT: m.MinT, MaxT: m.MaxT, Series: m.Series, Samples: m.Floats + m.Hists, Bytes: m.Bytes(),
	}
	_, err = catalog.Commit(l.tb.Context(), l.store, l.tenant, func(c catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		c.Blocks = append(slices.Clip(c.Blocks), b)
		slices.SortFunc(c.Blocks, func(a, b catalog.Block) int {
			if a.Window != b.Window {
				return int(a.Window - b.Window)
			}
			if a.Level != b.Level {
				return int(a.Level) - int(b.Level)
			}
			return a.ID.Compare(b.ID)
		})
		return c, nil
	})
	require.NoError(l.tb, err)
}

// newestRank returns a rank above all existing segments and blocks of the tenant. A segment's rank
// is the store's time, so segments written later have higher ranks.
func (l lake) newestRank() ulid.ULID {
	snap, err := catalog.Take(l.tb.Context(), l.store, l.tenant, key.MinTime, key.MaxTime)
	require.NoError(l.tb, err)
	var newest ulid.ULID
	for _, s := range snap.Segments {
		newest = later(newest, s.Rank)
	}
	for _, b := range snap.Blocks {
		newest = later(newest, b.Rank)
	}
	for i := len(newest) - 1; i >= 0; i-- {
		if newest[i]++; newest[i] != 0 {
			break
		}
	}
	return newest
}

func later(a, b ulid.ULID) ulid.ULID {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}

// files puts the files of a block into the store. It implements block.Files.
type files struct {
	lake
	key key.Block
}

type file struct {
	bytes.Buffer
	files
	name string
}

func (f files) Create(name string) (io.WriteCloser, error) { return &file{files: f, name: name}, nil }

func (f *file) Close() error {
	_, err := f.store.Put(context.Background(), f.key.File(f.name), bytes.NewReader(f.Bytes()), objstore.Condition{IfAbsent: true})
	return err
}
