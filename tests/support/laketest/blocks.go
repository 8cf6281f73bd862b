package laketest

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// BlockFiles puts the files of a block into a store. It implements block.Files.
type BlockFiles struct {
	TB    testing.TB
	Store objstore.Store
	Key   key.Block
}

type blockFile struct {
	bytes.Buffer
	files BlockFiles
	name  string
}

// Create implements block.Files.
func (f BlockFiles) Create(name string) (io.WriteCloser, error) {
	return &blockFile{files: f, name: name}, nil
}

func (f *blockFile) Close() error {
	Put(f.files.TB, f.files.Store, f.files.Key.File(f.name), f.Bytes())
	return nil
}

// Shape is how blocks are written by tests. Small row groups and files make many of them.
type Shape struct {
	Level     key.Level
	GroupRows int
	FileBytes int64
	Rollups   bool
}

// WriteBlocks stores rows as live blocks of a tenant, one per window of the level, and returns
// them. Their rank is above that of all earlier objects.
func (l *Lake) WriteBlocks(tenantID string, shape Shape, rows []segment.Row, meta ...segment.Metadata) []catalog.Block {
	l.TB.Helper()
	byWindow := map[key.Window][]segment.Row{}
	for _, r := range rows {
		for w, part := range splitRow(r, shape.Level.WindowOf) {
			byWindow[w] = append(byWindow[w], part)
		}
	}
	if len(rows) == 0 && len(meta) > 0 {
		byWindow[shape.Level.WindowOf(Now().UnixMilli())] = nil
	}
	var out []catalog.Block
	for _, w := range slices.Sorted(maps.Keys(byWindow)) {
		out = append(out, l.writeBlock(tenantID, shape, w, l.NextID(), byWindow[w], meta))
	}
	return out
}

// splitRow divides a row by windows.
func splitRow(r segment.Row, windowOf func(int64) key.Window) map[key.Window]segment.Row {
	out := map[key.Window]segment.Row{}
	in := func(t int64, change func(*segment.Row)) {
		w := windowOf(t)
		part := out[w]
		part.Labels = r.Labels
		change(&part)
		out[w] = part
	}
	for _, f := range r.Floats {
		in(f.T, func(p *segment.Row) { p.Floats = append(p.Floats, f) })
	}
	for _, h := range r.Hists {
		in(h.T, func(p *segment.Row) { p.Hists = append(p.Hists, h) })
	}
	for _, e := range r.Exemplars {
		in(e.Ts, func(p *segment.Row) { p.Exemplars = append(p.Exemplars, e) })
	}
	return out
}

// writeBlock stores one live block. Rows may come in any order; a row without samples is left out.
func (l *Lake) writeBlock(tenantID string, shape Shape, w key.Window, rank ulid.ULID, rows []segment.Row, meta []segment.Metadata) catalog.Block {
	l.TB.Helper()
	k := key.Block{Tenant: tenantID, Level: shape.Level, Window: w, ID: l.NextID()}
	table := series.NewTable(7)
	byRef := map[series.Ref]*segment.Row{}
	hasST := false
	for i := range rows {
		var lset []series.Label
		rows[i].Labels.Range(func(x labels.Label) { lset = append(lset, series.Label{Name: x.Name, Value: x.Value}) })
		ref, err := table.Intern(lset)
		require.NoError(l.TB, err)
		if byRef[ref] != nil {
			l.TB.Fatalf("series %s twice in a block", rows[i].Labels)
		}
		byRef[ref] = &rows[i]
		hasST = hasST || slices.ContainsFunc(rows[i].Floats, func(f segment.Float) bool { return f.ST != 0 })
	}
	view := table.View()
	bw, err := block.NewWriter(BlockFiles{TB: l.TB, Store: l.Store, Key: k}, &view, block.Options{
		Level: shape.Level, HasST: hasST, RowGroupRows: shape.GroupRows, FileBytes: shape.FileBytes,
	})
	require.NoError(l.TB, err)
	rw, err := rollup.NewWriter(BlockFiles{TB: l.TB, Store: l.Store, Key: k}, nil)
	require.NoError(l.TB, err)
	refs := slices.SortedFunc(maps.Keys(byRef), func(a, b series.Ref) int { return series.ComparePriority(&view, a, b) })
	for _, ref := range refs {
		x := samplesOf(byRef[ref], hasST)
		require.NoError(l.TB, bw.Append(ref, x))
		if shape.Rollups && len(x.TS) > 0 {
			require.NoError(l.TB, rw.Append(view.Metrics[view.Metric(ref)], bw.LastID(), x.TS, x.V, x.ST))
		}
	}
	files, err := rw.Close()
	require.NoError(l.TB, err)
	for _, f := range files {
		bw.AddFile(f.Name, f.Bytes)
	}
	if len(meta) > 0 {
		require.NoError(l.TB, bw.Metadata(meta))
	}
	m, err := bw.Close(block.Header{Level: shape.Level, Window: w, Rank: rank})
	require.NoError(l.TB, err)
	b := catalog.Block{
		Level: shape.Level, Window: w, ID: k.ID, Rank: rank, MinT: m.MinT, MaxT: m.MaxT, Series: m.Series, Samples: m.Floats + m.Hists, Bytes: m.Bytes(),
	}
	l.Commit(tenantID, func(c catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		b.DeletesThrough = c.LastTombstone // it is made of what is written now
		c.Blocks = append(slices.Clip(c.Blocks), b)
		slices.SortFunc(c.Blocks, func(a, b catalog.Block) int {
			return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.Level, b.Level), a.ID.Compare(b.ID))
		})
		return c, nil
	})
	return b
}

// Commit changes the manifest of a tenant.
func (l *Lake) Commit(tenantID string, change catalog.Change) catalog.Manifest {
	l.TB.Helper()
	m, err := catalog.Commit(l.TB.Context(), l.Store, tenantID, change)
	require.NoError(l.TB, err)
	return m
}

// Delete deletes from what is there.
func (l *Lake) Delete(tenantID string, ms []*labels.Matcher, mint, maxt int64) catalog.Manifest {
	l.TB.Helper()
	m, err := catalog.Delete(l.TB.Context(), l.Store, tenantID, catalog.Deletion{Sets: [][]catalog.Matcher{catalog.MatchersOf(ms)}, MinT: mint, MaxT: maxt})
	require.NoError(l.TB, err)
	return m
}

// samplesOf returns a row's samples as a block's writer takes them: of equal timestamps, the last
// sample counts.
func samplesOf(r *segment.Row, st bool) *block.Samples {
	s := &block.Samples{}
	slices.SortStableFunc(r.Floats, func(a, b segment.Float) int { return cmp.Compare(a.T, b.T) })
	slices.SortStableFunc(r.Hists, func(a, b segment.Hist) int { return cmp.Compare(a.T, b.T) })
	slices.SortStableFunc(r.Exemplars, func(a, b exemplar.Exemplar) int { return cmp.Compare(a.Ts, b.Ts) })
	for i, f := range r.Floats {
		if i+1 < len(r.Floats) && r.Floats[i+1].T == f.T {
			continue
		}
		s.TS, s.V = append(s.TS, f.T), append(s.V, f.V)
		if st {
			s.ST = append(s.ST, f.ST)
		}
	}
	for i, h := range r.Hists {
		if i+1 < len(r.Hists) && r.Hists[i+1].T == h.T {
			continue
		}
		s.Hists = append(s.Hists, h)
	}
	s.Exemplars = r.Exemplars
	return s
}
