package doctorapp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/doctorapp"
	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/filestore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

var start = time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)

// lake is a directory with a block of a consumed segment and a live segment of one tenant.
type lake struct {
	t       *testing.T
	dir     string
	store   objstore.Store
	segment string // key
	block   key.Block
}

func newLake(t *testing.T) *lake {
	t.Helper()
	l := &lake{t: t, dir: t.TempDir()}
	store, err := filestore.New(l.dir)
	require.NoError(t, err)
	l.store = store
	old, live := l.write(1), l.write(2)
	l.segment = live.Key("a").String()
	id := catalog.BlockID{Level: key.L2h, Window: old.Window, ID: ulidAt(9)}
	l.block = id.Key("a")
	files := blockio.NewWriter(t.Context(), l.store, l.block, t.TempDir())
	table := series.NewTable(0)
	ref, err := table.Intern([]series.Label{{Name: model.MetricNameLabel, Value: "up"}})
	require.NoError(t, err)
	view := table.View()
	w, err := block.NewWriter(files, &view, block.Options{Level: key.L2h})
	require.NoError(t, err)
	require.NoError(t, w.Append(ref, &block.Samples{TS: []int64{start.UnixMilli(), start.UnixMilli() + 1000}, V: []float64{1, 2}}))
	m, err := w.Close(block.Header{Level: id.Level, Window: id.Window, Rank: old.ID, Slice: block.Slice{Of: 1}})
	require.NoError(t, err)
	require.NoError(t, files.Close())
	_, err = catalog.Commit(t.Context(), l.store, "a", func(c catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		return c.Replace(now, catalog.Sources{Segments: []catalog.SegmentID{old}}, []catalog.Block{{
			Level: id.Level, Window: id.Window, ID: id.ID, Rank: old.ID, MinT: m.MinT, MaxT: m.MaxT, Series: 1, Samples: 2, Bytes: files.Bytes(),
		}})
	})
	require.NoError(t, err)
	return l
}

func ulidAt(n byte) (id ulid.ULID) {
	if err := id.SetTime(ulid.Timestamp(time.Now())); err != nil {
		panic(err)
	}
	id[15] = n
	return id
}

func (l *lake) write(n byte) catalog.SegmentID {
	l.t.Helper()
	body, _, err := segmenttest.Encode([]segment.Row{{
		Labels: labels.FromStrings(model.MetricNameLabel, "up"),
		Floats: []segment.Float{{T: start.UnixMilli() + int64(n), V: 1}, {T: start.UnixMilli() + 500, V: 3}},
	}}, nil)
	require.NoError(l.t, err)
	id := catalog.SegmentID{Window: key.WindowOf(start.UnixMilli()), ID: ulidAt(n)}
	_, err = l.store.Put(l.t.Context(), id.Key("a").String(), bytes.NewReader(body), objstore.Condition{IfAbsent: true})
	require.NoError(l.t, err)
	return id
}

// flip changes a bit of an object and returns its bytes.
func (l *lake) flip(k string, at int) []byte {
	l.t.Helper()
	path := filepath.Join(l.dir, filepath.FromSlash(k))
	b, err := os.ReadFile(path)
	require.NoError(l.t, err)
	b[at] ^= 1
	require.NoError(l.t, os.Remove(path))
	require.NoError(l.t, os.WriteFile(path, b, 0o640))
	return b
}

func (l *lake) examine(s doctorapp.Settings) doctorapp.Report {
	l.t.Helper()
	r, err := doctorapp.Examine(l.t.Context(), l.store, s)
	require.NoError(l.t, err)
	return r
}

func TestHealthyStore(t *testing.T) {
	l := newLake(t)
	for _, verify := range []bool{false, true} {
		r := l.examine(doctorapp.Settings{Verify: verify, Quarantine: true})
		require.True(t, r.Healthy(), r.Text())
		require.Equal(t, 1, r.Tenants[0].Segments)
		require.Equal(t, 1, r.Tenants[0].Blocks)
		require.Empty(t, r.Tenants[0].Damaged)
	}
}

// TestQuarantine damages a page of each kind of object: only --verify sees it. Afterwards the
// objects do not count, and their bytes are kept.
func TestQuarantine(t *testing.T) {
	l := newLake(t)
	samples := l.block.File(block.SamplesFile(0))
	kept := map[string][]byte{l.segment: l.flip(l.segment, 60), samples: l.flip(samples, 60)}
	require.True(t, l.examine(doctorapp.Settings{}).Healthy(), "footers are whole")
	r := l.examine(doctorapp.Settings{Verify: true})
	require.False(t, r.Healthy())
	require.Len(t, r.Tenants[0].Damaged, 2)
	seg, blk := r.Tenants[0].Damaged[0], r.Tenants[0].Damaged[1]
	require.Equal(t, []any{l.segment, int64(1), int64(2), start.Add(2 * time.Millisecond), false}, []any{seg.Object, seg.Series, seg.Samples, seg.MinTime, seg.Quarantined})
	require.Equal(t, []any{l.block.Prefix(), int64(1), int64(2), start, start.Add(time.Second)}, []any{blk.Object, blk.Series, blk.Samples, blk.MinTime, blk.MaxTime})
	require.Contains(t, blk.Error, samples[strings.LastIndexByte(samples, '/')+1:])

	r = l.examine(doctorapp.Settings{Verify: true, Quarantine: true})
	require.True(t, r.Healthy())
	require.Len(t, r.Tenants[0].Damaged, 2)
	require.Contains(t, r.Text(), "lost: 2 samples of 1 series")
	var parsed doctorapp.Report
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &parsed))
	require.True(t, parsed.Tenants[0].Damaged[0].Quarantined)
	for k, want := range kept {
		require.Equal(t, want, read(t, l.store, key.Quarantine+k))
	}
	r = l.examine(doctorapp.Settings{Verify: true})
	require.True(t, r.Healthy())
	require.Zero(t, r.Tenants[0].Segments+r.Tenants[0].Blocks)
	snap, err := catalog.Take(t.Context(), l.store, "a", key.MinTime, key.MaxTime)
	require.NoError(t, err)
	require.Empty(t, snap.Segments)
	require.Empty(t, snap.Blocks)
}

// TestMissingObject: a live block whose meta.json is not there is damaged.
func TestMissingObject(t *testing.T) {
	l := newLake(t)
	require.NoError(t, os.Remove(filepath.Join(l.dir, filepath.FromSlash(l.block.File(block.MetaFile)))))
	r := l.examine(doctorapp.Settings{})
	require.False(t, r.Healthy())
	require.Equal(t, l.block.Prefix(), r.Tenants[0].Damaged[0].Object)
	require.True(t, l.examine(doctorapp.Settings{Quarantine: true}).Healthy())
}

func TestUnreadableManifest(t *testing.T) {
	l := newLake(t)
	l.flip(key.Manifest("a"), 0)
	r := l.examine(doctorapp.Settings{Quarantine: true})
	require.False(t, r.Healthy())
	require.Contains(t, r.Tenants[0].Error, "manifest")
	require.Contains(t, r.Text(), "MANIFEST")
}

// unreachable fails every read of a sample file.
type unreachable struct{ objstore.Store }

func (u unreachable) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	if strings.HasPrefix(k, "v1/a/segments/") {
		return nil, objstore.Object{}, context.DeadlineExceeded
	}
	return u.Store.Get(ctx, k, offset, length)
}

// TestStoreThatDoesNotAnswer: what could not be read is not called damaged, and nothing is
// quarantined.
func TestStoreThatDoesNotAnswer(t *testing.T) {
	l := newLake(t)
	_, err := doctorapp.Examine(t.Context(), unreachable{l.store}, doctorapp.Settings{Verify: true, Quarantine: true})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	snap, err := catalog.Take(t.Context(), l.store, "a", key.MinTime, key.MaxTime)
	require.NoError(t, err)
	require.Len(t, snap.Segments, 1)
}

func read(t *testing.T, store objstore.Store, k string) []byte {
	t.Helper()
	r, _, err := store.Get(t.Context(), k, 0, -1)
	require.NoError(t, err)
	b, err := io.ReadAll(r)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return b
}
