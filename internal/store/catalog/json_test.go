package catalog_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/schematest"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	golden    = "testdata/manifest-v2.json"
	goldenOld = "testdata/manifest-v1.json" // the same without what version 1 did not have
)

// everything is a manifest with an entry of every kind, with every field.
func everything(t *testing.T) catalog.Manifest {
	split := catalog.Split{ID: id(5 * minute), Level: key.L12h, Window: win(6), Of: 3, Sources: catalog.Sources{
		Segments: []catalog.SegmentID{sid(7, 5*sec)}, Blocks: blocks(blk(key.Part, 6, 4*minute, 4*sec)).Blocks,
	}}
	none := catalog.Block{Level: key.L12h, Window: win(6), Slice: catalog.Slice{Index: 0, Of: 3}}
	two := blk(key.L2h, 0, 3*minute, 2*sec)
	m := chain(t,
		replace(3*minute, segments(sid(0, 1*sec), sid(0, 2*sec)), two),
		replace(4*minute, segments(sid(6, 4*sec)), blk(key.Part, 6, 4*minute, 4*sec)),
		func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			queued := sid(9, 6*sec)
			queued.Queued = true
			m, _, err := m.Delete(at(5*minute), catalog.Tombstone{
				Matchers: job, MinT: int64(win(0)), MaxT: int64(win(9)), QueuedThrough: at(5*minute+20*sec).UnixMilli() - 1,
			}, []catalog.SegmentID{sid(7, 5*sec), queued})
			return m, err
		},
		replace(5*minute, blocks(two), blk(key.L24h, 0, 4*minute, 2*sec)),
		begin(5*minute, split), slice(6*minute, split.ID, none), slice(6*minute, split.ID, sliced(blk(key.L12h, 6, 5*minute, 5*sec), 2, 3)),
		func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			return m.Prune(at(time.Hour), catalog.Point{Generation: 1, ID: id(1 * sec)})
		},
		func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			return m.Forget([]catalog.SegmentID{sid(0, 2*sec)}, []catalog.BlockID{two.BlockID()})
		},
		func(m catalog.Manifest, _ time.Time) (catalog.Manifest, error) {
			b := sliced(blk(key.L2h, 20, 8*minute, sec), 1, 2)
			b.DeletesThrough = m.LastTombstone
			return m.Add(at(8*minute), b, []string{"tsdb/01KDY025W80000000000000000"}, nil)
		},
	)
	return m
}

func TestGolden(t *testing.T) {
	b, err := catalog.Encode(everything(t))
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(golden, b, 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(b))
	back, err := catalog.Decode(want)
	require.NoError(t, err)
	require.Equal(t, everything(t), back)
}

// TestUpgrade: a manifest of version 1 is read, and its tombstone applies to what it applied to: to
// objects whose rank is below its identifier.
func TestUpgrade(t *testing.T) {
	b, err := os.ReadFile(goldenOld)
	require.NoError(t, err)
	m, err := catalog.Decode(b)
	require.NoError(t, err)
	require.Equal(t, catalog.ManifestVersion, m.Version)
	require.Len(t, m.Tombstones, 1)
	tomb := m.Tombstones[0]
	for _, blk := range append(m.Blocks, m.Splits[0].Done[1]) {
		require.Equal(t, blk.Rank.Compare(tomb.ID) < 0, tomb.Covers(blk.DeletesThrough), blk.BlockID())
	}
	require.True(t, tomb.Covers(through(t, m, sid(7, 5*sec))))
	require.False(t, tomb.Covers(through(t, m, sid(7, 6*minute))))
	_, err = m.DropTombstones(at(time.Hour), []ulid.ULID{tomb.ID})
	require.ErrorIs(t, err, catalog.ErrConflict)

	newer := bytes.ReplaceAll(b, []byte(`"rank":"01KDY022YG`), []byte(`"rank":"01KDY0ZZZZ`))
	m, err = catalog.Decode(newer)
	require.NoError(t, err)
	require.False(t, tomb.Covers(m.Blocks[0].DeletesThrough), "a block that was written after the deletion")
	_, err = catalog.Encode(m)
	require.NoError(t, err)
}

// TestSchema holds the JSON Schema against the golden manifest, and against it with each value
// changed for the worse.
func TestSchema(t *testing.T) {
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	empty, err := catalog.Encode(catalog.Empty())
	require.NoError(t, err)
	names, docs := []string{"golden", "empty"}, [][]byte{b, empty}
	spoil(t, b, func(what string, b []byte) {
		names, docs = append(names, what), append(docs, b)
		_, err := catalog.Decode(b)
		require.ErrorIs(t, err, catalog.ErrFormat, what)
	})
	require.Greater(t, len(docs), 102)
	for i, wrong := range schematest.Validate(t, "../../../schemas/manifest.schema.json", docs...) {
		require.Equal(t, i < 2, wrong == "", "%s: %s", names[i], wrong)
	}
}

// spoil calls fn with the JSON of b once for every object in it with a member too many, and for
// every scalar of another type.
func spoil(t *testing.T, b []byte, fn func(what string, b []byte)) {
	var root any
	require.NoError(t, json.Unmarshal(b, &root))
	emit := func(what string) {
		out, err := json.Marshal(root)
		require.NoError(t, err)
		fn(what, out)
	}
	var walk func(path string, v any, set func(any))
	walk = func(path string, v any, set func(any)) {
		switch v := v.(type) {
		case map[string]any:
			v["more"] = 1
			emit(path + ".more")
			delete(v, "more")
			for name, e := range v {
				walk(path+"."+name, e, func(e any) { v[name] = e })
			}
		case []any:
			for i, e := range v {
				walk(path+"[]", e, func(e any) { v[i] = e })
			}
		default:
			set([]any{})
			emit(path + " as a list")
			set(v)
		}
	}
	walk("", root, func(any) {})
}

func TestDecodeRefuses(t *testing.T) {
	b, err := os.ReadFile(golden)
	require.NoError(t, err)
	good := string(b)
	_, err = catalog.Decode(b)
	require.NoError(t, err)
	for _, s := range []string{`{"version":3,"blocks":"all of them"}`, `{"version":3}`} {
		_, err := catalog.Decode([]byte(s))
		require.ErrorIs(t, err, checksum.ErrUnknownVersion, s)
		require.NotErrorIs(t, err, catalog.ErrFormat, s)
	}
	for name, s := range map[string]string{
		"newer version":       strings.Replace(good, `"version":2`, `"version":3`, 1),
		"no version":          strings.Replace(good, `"version":2,`, ``, 1),
		"trailing bytes":      good + "{}",
		"cut":                 good[:len(good)/2],
		"listed twice":        strings.Replace(good, `022YG0000000000000000","at"`, `021Z80000000000000000","at"`, 1),
		"unsorted":            strings.Replace(good, `"consumed":[{"window":"20260102T0000Z","id":"01`, `"consumed":[{"window":"20260102T0000Z","id":"71`, 1),
		"unknown level":       strings.Replace(good, `"24h"`, `"48h"`, 1),
		"no window":           strings.Replace(good, `"20260102T0000Z"`, `"20260102T0001Z"`, 1),
		"no window of level":  strings.Replace(good, `"24h","window":"20260102T0000Z"`, `"24h","window":"20260102T0200Z"`, 1),
		"bad matcher":         strings.Replace(good, `"type":"="`, `"type":"=="`, 1),
		"id of generation 0":  strings.Replace(good, `"generation":10`, `"generation":0`, 1),
		"oldest is newer":     strings.Replace(good, `"oldest":{"generation":1`, `"oldest":{"generation":11`, 1),
		"tombstone is newer":  strings.Replace(good, `"last_tombstone":"01`, `"last_tombstone":"00`, 1),
		"negative samples":    strings.Replace(good, `"samples":30`, `"samples":-30`, 1),
		"sealed by the next":  strings.Replace(good, `"by":"01`, `"by":"02`, 1),
		"sealed by nothing":   regexp.MustCompile(`"by":"[^"]*"`).ReplaceAllString(good, `"by":"00000000000000000000000000"`),
		"all slices are done": strings.Replace(good, `"of":3,"sources"`, `"of":2,"sources"`, 1),
	} {
		require.NotEqual(t, good, s, name)
		_, err := catalog.Decode([]byte(s))
		require.ErrorIs(t, err, catalog.ErrFormat, name)
	}
}

func FuzzDecode(f *testing.F) {
	b, err := os.ReadFile(golden)
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := catalog.Decode(b)
		if err != nil {
			require.ErrorIs(t, err, catalog.ErrFormat)
			return
		}
		again, err := catalog.Encode(m)
		require.NoError(t, err)
		back, err := catalog.Decode(again)
		require.NoError(t, err)
		third, err := catalog.Encode(back)
		require.NoError(t, err)
		require.Equal(t, string(again), string(third))
	})
}

func BenchmarkDecode(b *testing.B) {
	m := catalog.Empty()
	m.Generation, m.ID = 1, id(time.Hour)
	for i := range 2000 {
		m.Consumed = append(m.Consumed, catalog.Consumed{SegmentID: sid(0, time.Duration(i)*sec), At: 1, Generation: 1})
	}
	raw, err := catalog.Encode(m)
	require.NoError(b, err)
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := catalog.Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}
