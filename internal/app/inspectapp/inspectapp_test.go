package inspectapp_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/inspectapp"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// start is a time at which a day begins, UTC.
var start = time.Date(2026, 5, 3, 0, 0, 0, 0, time.UTC)

// bucket is a store that a test fills. Its clock stands at now.
type bucket struct {
	t     *testing.T
	store objstore.Store
	now   time.Time
	ids   byte
}

func newBucket(t *testing.T) *bucket {
	b := &bucket{t: t, now: start}
	b.store = memstore.New(memstore.Settings{Now: func() time.Time { return b.now }})
	return b
}

func (b *bucket) put(k string, body []byte) {
	b.t.Helper()
	_, err := b.store.Put(b.t.Context(), k, bytes.NewReader(body), objstore.Condition{})
	require.NoError(b.t, err)
}

func (b *bucket) id() (id ulid.ULID) {
	b.t.Helper()
	require.NoError(b.t, id.SetTime(ulid.Timestamp(b.now)))
	b.ids++
	id[15] = b.ids
	return id
}

// segment writes a segment with one sample a series, in the window of start.
func (b *bucket) segment(jobs ...string) catalog.SegmentID {
	b.t.Helper()
	var rows []segment.Row
	for _, job := range jobs {
		rows = append(rows, segment.Row{
			Labels: labels.FromStrings(model.MetricNameLabel, "up", "job", job),
			Floats: []segment.Float{{T: start.UnixMilli() + 1000, V: 1}},
		})
	}
	body, _, err := segmenttest.Encode(rows, nil)
	require.NoError(b.t, err)
	s := key.Segment{Tenant: "a", Window: key.WindowOf(start.UnixMilli()), ID: b.id()}
	b.put(s.String(), body)
	return catalog.SegmentID{Window: s.Window, ID: s.ID}
}

// block writes what Inspect reads of a block, and returns how a manifest lists it.
func (b *bucket) block(l key.Level, rank ulid.ULID, m block.Meta) catalog.Block {
	b.t.Helper()
	m.Version, m.Level, m.Rank = block.FormatVersion, l, rank
	out := catalog.Block{
		Level: l, Window: l.WindowOf(start.UnixMilli()), ID: b.id(), Rank: rank, MinT: start.UnixMilli(), MaxT: start.UnixMilli() + 5000,
		Series: m.Series, Samples: m.Floats + m.Hists, Bytes: m.Bytes(),
	}
	m.Window, m.MinT, m.MaxT = out.Window, out.MinT, out.MaxT
	body, err := json.Marshal(m)
	require.NoError(b.t, err)
	for _, f := range m.Files {
		b.put(out.Key("a").File(f.Name), make([]byte, f.Bytes))
	}
	b.put(out.Key("a").File(block.MetaFile), body)
	return out
}

func (b *bucket) commit(change catalog.Change) {
	b.t.Helper()
	b.now = b.now.Add(time.Second)
	_, err := catalog.Commit(b.t.Context(), b.store, "a", change)
	require.NoError(b.t, err)
}

func (b *bucket) inspect(tenant string) inspectapp.Report {
	b.t.Helper()
	s, err := compact.Settings{}.WithDefaults()
	require.NoError(b.t, err)
	r, err := inspectapp.Inspect(b.t.Context(), b.store, tenant, s, b.now)
	require.NoError(b.t, err)
	return r
}

var meta = block.Meta{
	Series: 10, Floats: 1000,
	Files: []block.File{
		{Name: "samples-0000.parquet", Bytes: 500, Rows: 1000, RowGroups: []block.RowGroup{
			{Rows: 1000, Columns: []block.Chunk{{4, 1}, {5, 9}, {14, 40}, {54, 350}, {404, 20}, {424, 60}}},
		}},
		{Name: block.SeriesFile, Bytes: 100, Rows: 10},
	},
}

// scene leaves a tenant with one of everything.
func scene(t *testing.T) *bucket {
	b := newBucket(t)
	first, second := b.segment("x"), b.segment("x", "y")
	old := b.block(key.Part, first.ID, meta)
	b.commit(func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		return m.Replace(b.now, catalog.Sources{Segments: []catalog.SegmentID{first}}, []catalog.Block{old})
	})
	live := b.block(key.L2h, second.ID, meta)
	b.commit(func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		return m.Replace(b.now, catalog.Sources{Segments: []catalog.SegmentID{second}, Blocks: []catalog.BlockID{old.BlockID()}}, []catalog.Block{live})
	})
	b.commit(func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
		m, _, err := m.Delete(b.now, catalog.Tombstone{Matchers: []catalog.Matcher{{Type: "=~", Name: "job", Value: `a"b`}}, MinT: key.MinTime, MaxT: start.UnixMilli()}, nil)
		return m, err
	})
	b.block(key.L24h, second.ID, meta) // its writer died
	b.put("v1/a/segments/README", []byte("mine"))
	b.segment("x", "y", "z")
	b.now = b.now.Add(3 * time.Hour)
	return b
}

func TestInspect(t *testing.T) {
	b := scene(t)
	got := b.inspect("a")
	require.Equal(t, got, b.inspect(""), "there is one tenant")
	a := got.Tenants[0]
	require.Equal(t, uint64(3), a.Manifest.Generation)
	require.Equal(t, start.Add(3*time.Second), *a.Manifest.Time)

	require.Len(t, a.Levels, 2)
	require.Equal(t, []any{"segment", 1, int64(3), int64(3)}, []any{a.Levels[0].Level, a.Levels[0].Objects, a.Levels[0].Series, a.Levels[0].Samples})
	require.Equal(t, start.Add(time.Second), *a.Levels[0].MinTime)
	require.Equal(t, []any{"2h", 1, int64(10), int64(1000)}, []any{a.Levels[1].Level, a.Levels[1].Objects, a.Levels[1].Series, a.Levels[1].Samples})
	require.Equal(t, start.Add(5*time.Second), *a.Levels[1].MaxTime)

	require.Len(t, a.Blocks, 1)
	require.Equal(t, a.Levels[1].Bytes, a.Blocks[0].Bytes)
	require.Greater(t, a.Blocks[0].Bytes, int64(600), "meta.json counts")
	sum := int64(0)
	for _, c := range a.Columns {
		sum += c.Bytes
	}
	require.Equal(t, a.Blocks[0].Bytes, sum)
	require.Contains(t, a.Columns, inspectapp.Column{File: "samples", Column: "v_int", Bytes: 350})
	require.Contains(t, a.Columns, inspectapp.Column{File: "samples", Column: "footer", Bytes: 20})

	require.Equal(t, 2, a.Garbage.Consumed.Objects)
	require.Equal(t, 3, a.Garbage.Retired.Objects)
	require.Equal(t, 3, a.Garbage.Unlisted.Objects)
	require.Equal(t, inspectapp.Pile{Objects: 1, Bytes: 4}, a.Garbage.Foreign)

	require.Len(t, a.Tombstones, 1)
	require.Equal(t, `{job=~"a\"b"}`, a.Tombstones[0].Match)
	require.Equal(t, start, a.Tombstones[0].MaxTime)
	require.NotEmpty(t, a.Next, "the segment and the tombstone want a merge")
}

func TestInspectNothing(t *testing.T) {
	b := newBucket(t)
	r := b.inspect("")
	require.Empty(t, r.Tenants)
	require.Equal(t, "The store is empty.\n", r.Text())
	body, err := json.Marshal(b.inspect("nobody"))
	require.NoError(t, err)
	require.NotContains(t, string(body), "null", "scripts find empty lists")
}

func TestText(t *testing.T) {
	text := scene(t).inspect("").Text()
	for _, want := range []string{
		"tenant a, manifest of generation 3, committed 2026-05-03T00:00:03Z\n",
		"LEVEL    OBJECTS  SERIES  SAMPLES",
		"\nsegment        1       3        3 ",
		"\n2h             1      10     1.0k ",
		"\nBLOCKS' BYTES BY COLUMN ",
		"\nsamples.v_int ",
		"\nsegments that wait for their deletion           2 ",
		"\nblocks being written, or left by a crash        3 ",
		"\n{job=~\"a\\\"b\"}  2026-05-03T00:00:03Z  0000-01-01T00:00:00Z  2026-05-03T00:00:00Z\n",
		"\nTO COMPACT NOW\n",
	} {
		require.Contains(t, text, want)
	}
	for line := range strings.Lines(text) {
		require.Equal(t, strings.TrimRight(line, " \n")+"\n", line, "no blanks at the ends of lines")
	}
}
