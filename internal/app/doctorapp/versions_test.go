package doctorapp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/doctorapp"
	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
)

// golden is a store of golden objects, a week after they were written: two segments and a block of
// the first window.
type golden struct {
	*memstore.Store
	segment string // key of one of them
	block   key.Block
}

// edit changes an object before it is stored.
type edit func(name string, b []byte) []byte

func newGolden(t *testing.T, version int, change edit) *golden {
	t.Helper()
	var later atomic.Int64
	g := &golden{Store: memstore.New(memstore.Settings{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})}
	put := func(k, path string) {
		b, err := os.ReadFile(filepath.FromSlash("../../format/" + path))
		require.NoError(t, err)
		if change != nil {
			b = change(filepath.Base(path), b)
		}
		_, err = g.Put(t.Context(), k, bytes.NewReader(b), objstore.Condition{IfAbsent: true})
		require.NoError(t, err)
	}
	for n := range byte(2) {
		g.segment = key.Segment{Tenant: "a", ID: ulidAt(n + 1)}.String()
		put(g.segment, fmt.Sprintf("segment/testdata/segment-v%d.parquet", version))
	}
	folder := fmt.Sprintf("block/testdata/block-v%d", version)
	b, err := os.ReadFile(filepath.FromSlash("../../format/" + folder + "/" + block.MetaFile))
	require.NoError(t, err)
	m, err := block.ReadMeta(b)
	require.NoError(t, err)
	entry := catalog.Block{
		Level: m.Level, Window: m.Window, ID: ulidAt(9), Rank: m.Rank, MinT: m.MinT, MaxT: m.MaxT, Series: m.Series, Samples: m.Floats + m.Hists, Bytes: m.Bytes(),
	}
	g.block = entry.Key("a")
	for _, f := range append(m.Files, block.File{Name: block.MetaFile}) {
		put(g.block.File(f.Name), folder+"/"+f.Name)
	}
	_, err = catalog.Commit(t.Context(), g, "a", func(c catalog.Manifest, now time.Time) (catalog.Manifest, error) {
		return c.Replace(now, catalog.Sources{Segments: []catalog.SegmentID{{ID: ulid.ULID(m.Rank)}}}, []catalog.Block{entry})
	})
	require.NoError(t, err)
	later.Store(int64(7 * 24 * time.Hour))
	return g
}

func (g *golden) compact(t *testing.T) error {
	t.Helper()
	s, err := compact.New(compact.Settings{}, g, prometheus.NewRegistry(), slog.New(slog.DiscardHandler), time.Now)
	require.NoError(t, err)
	return s.UntilIdle(t.Context(), nil, nil)
}

// remove deletes the samples of a metric.
func (g *golden) remove(t *testing.T, metric string) {
	t.Helper()
	_, err := catalog.Delete(t.Context(), g, "a", catalog.Deletion{Sets: [][]catalog.Matcher{{{Type: "=", Name: "__name__", Value: metric}}}, MinT: 0, MaxT: key.MaxTime})
	require.NoError(t, err)
}

// TestGoldenStores: stores of each version are read, compacted and deleted in.
func TestGoldenStores(t *testing.T) {
	for version := 1; version <= block.FormatVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			g := newGolden(t, version, nil)
			r, err := doctorapp.Examine(t.Context(), g, doctorapp.Settings{Verify: true, Quarantine: true})
			require.NoError(t, err)
			require.True(t, r.Healthy(), r.Text())
			require.Equal(t, 2, r.Tenants[0].Segments)
			require.Equal(t, 1, r.Tenants[0].Blocks)
			require.NoError(t, g.compact(t))
			before, _, err := catalog.ReadManifest(t.Context(), g, "a")
			require.NoError(t, err)
			require.Len(t, before.Blocks, 1)
			g.remove(t, "cpu")
			require.NoError(t, g.compact(t))
			after, _, err := catalog.ReadManifest(t.Context(), g, "a")
			require.NoError(t, err)
			require.Len(t, after.Blocks, 1)
			require.Positive(t, after.Blocks[0].Samples)
			require.Less(t, after.Blocks[0].Samples, before.Blocks[0].Samples)
			r, err = doctorapp.Examine(t.Context(), g, doctorapp.Settings{Verify: true})
			require.NoError(t, err)
			require.True(t, r.Healthy(), r.Text())
		})
	}
}

// later gives a golden object another version, with right checksums.
func later(t *testing.T, name, at string, b []byte) []byte {
	b = bytes.Clone(b)
	if name == block.MetaFile {
		body, found := bytes.CutSuffix(bytes.TrimSpace(b), []byte("}"))
		require.True(t, found)
		body = append(body[:bytes.LastIndexByte(body, ',')], '}')
		b, err := checksum.Append(bytes.Replace(body, []byte(`"version":2`), []byte(`"version":7`), 1))
		require.NoError(t, err)
		return b
	}
	end := len(b) - 8 // of the footer
	begin := end - int(binary.LittleEndian.Uint32(b[end:]))
	i := bytes.LastIndex(b, []byte(at))
	require.Greater(t, i, begin)
	i += len(at) + 2 // the head and the length of the value
	require.Equal(t, byte('2'), b[i])
	b[i] = '7'
	const sum = 5 // bytes of the checksum and of the end of the footer
	binary.LittleEndian.PutUint32(b[end-sum:], checksum.Update(checksum.UpdateUint64(0, uint64(begin)), b[begin:end-sum]))
	return b
}

// TestLaterVersions: objects of a version that this program does not know stay as they are, whatever
// is done with the store, and every error says that the program is too old.
func TestLaterVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		file, at string
		verify   bool // only then the file is read
	}{
		"segment":            {"segment-v2.parquet", "promlake.segment.version", false},
		"segment's sums":     {"segment-v2.parquet", "promlake.checksums", false},
		"meta.json":          {block.MetaFile, "", false},
		"samples' sums":      {block.SamplesFile(0), "promlake.checksums", true},
		"series of a block":  {block.SeriesFile, "promlake.block.version", true},
		"sums of the series": {block.SeriesFile, "promlake.checksums", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGolden(t, 2, func(name string, b []byte) []byte {
				if name == tc.file {
					return later(t, name, tc.at, b)
				}
				return b
			})
			g.remove(t, "cpu")
			data := func() []string { // all but manifests and their copies
				return slices.DeleteFunc(g.Keys(), func(k string) bool { return strings.Contains(k, "/manifest") })
			}
			keys := data()
			for _, verify := range []bool{tc.verify, true} {
				r, err := doctorapp.Examine(t.Context(), g, doctorapp.Settings{Verify: verify, Quarantine: true})
				require.NoError(t, err)
				require.False(t, r.Healthy())
				require.NotEmpty(t, r.Tenants[0].Damaged)
				for _, d := range r.Tenants[0].Damaged {
					require.True(t, d.NotUnderstood)
					require.False(t, d.Quarantined)
					require.Regexp(t, `unknown version "7" of .*; this program reads up to \d; upgrade promlake`, d.Error)
				}
				require.Contains(t, r.Text(), "NOT UNDERSTOOD")
			}
			require.ErrorIs(t, g.compact(t), checksum.ErrUnknownVersion)
			require.Equal(t, keys, data())
		})
	}
}

// TestSoundBytesAreKept: bytes that match their checksums are not damaged, although they make no
// sense to this program.
func TestSoundBytesAreKept(t *testing.T) {
	g := newGolden(t, 2, func(name string, b []byte) []byte {
		if name != block.MetaFile {
			return b
		}
		body := append(b[:bytes.LastIndexByte(b, ',')], '}')
		b, err := checksum.Append(bytes.Replace(body, []byte(`"series":17`), []byte(`"series":"many"`), 1))
		require.NoError(t, err)
		return b
	})
	r, err := doctorapp.Examine(t.Context(), g, doctorapp.Settings{Verify: true, Quarantine: true})
	require.NoError(t, err)
	require.Len(t, r.Tenants[0].Damaged, 1)
	require.True(t, r.Tenants[0].Damaged[0].NotUnderstood, r.Text())
	require.False(t, r.Tenants[0].Damaged[0].Quarantined)
}
