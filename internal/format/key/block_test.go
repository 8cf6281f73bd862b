package key_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

func TestLevels(t *testing.T) {
	const at = 1_753_977_599_999 // 2025-07-31T15:59:59.999Z
	for _, c := range []struct {
		level  key.Level
		name   string
		millis int64
		window string
		before string // the window of -1
	}{
		{key.Part, "part", 2 * hour, "20250731T1400Z", "19691231T2200Z"},
		{key.L2h, "2h", 2 * hour, "20250731T1400Z", "19691231T2200Z"},
		{key.L12h, "12h", 12 * hour, "20250731T1200Z", "19691231T1200Z"},
		{key.L24h, "24h", 24 * hour, "20250731T0000Z", "19691231T0000Z"},
	} {
		assert.Equal(t, c.name, c.level.String())
		assert.Equal(t, c.millis, c.level.Millis())
		w := c.level.WindowOf(at)
		assert.Equal(t, c.window, w.String())
		assert.Equal(t, int64(w)+c.millis, c.level.End(w))
		assert.Equal(t, c.before, c.level.WindowOf(-1).String())
		assert.Equal(t, key.Window(0), c.level.WindowOf(0))
		assert.Equal(t, key.MinTime, int64(c.level.WindowOf(key.MinTime)))
		assert.Equal(t, key.MaxTime+1, c.level.End(c.level.WindowOf(key.MaxTime)))
		back, err := key.ParseLevel(c.name)
		require.NoError(t, err)
		assert.Equal(t, c.level, back)
	}
	for _, s := range []string{"", "Part", "1h", "24", "level(9)"} {
		_, err := key.ParseLevel(s)
		assert.ErrorIs(t, err, key.ErrSyntax, "%q", s)
	}
	assert.Len(t, key.Levels, 4)
	assert.Equal(t, "level(9)", key.Level(9).String())
}

func TestText(t *testing.T) {
	type v struct {
		L key.Level
		W key.Window
	}
	const text = `{"L":"12h","W":"20250731T1200Z"}`
	want := v{key.L12h, key.L12h.WindowOf(1_753_977_599_999)}
	b, err := json.Marshal(want)
	require.NoError(t, err)
	assert.JSONEq(t, text, string(b))
	var got v
	require.NoError(t, json.Unmarshal(b, &got))
	assert.Equal(t, want, got)
	for _, s := range []string{`{"L":"6h"}`, `{"W":"20250731T1201Z"}`} {
		assert.ErrorIs(t, json.Unmarshal([]byte(s), &got), key.ErrSyntax, s)
	}
	assert.Equal(t, want, got)
	for _, bad := range []v{{L: 9}, {W: 1}} {
		_, err := json.Marshal(bad)
		assert.ErrorIs(t, err, key.ErrSyntax)
	}
}

func TestBlock(t *testing.T) {
	b := key.Block{Tenant: "team-a", Level: key.L12h, Window: key.L12h.WindowOf(1_753_977_599_999), ID: ulid.MustParse("01K1GZ8V6D8Q7N0XJ5W3C2B1A9")}
	const prefix = "v1/team-a/blocks/12h/20250731T1200Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9/"
	assert.Equal(t, prefix, b.Prefix())
	assert.Equal(t, "12h/20250731T1200Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9", b.String())
	assert.True(t, strings.HasPrefix(prefix, key.BlocksPrefix("team-a")))
	for _, name := range []string{
		"series.parquet", "samples-0000.parquet", "histograms-0000.parquet", "exemplars.parquet", "metadata.parquet", "rollup-5m.parquet", "meta.json",
		"a", "x" + strings.Repeat("0", 63),
	} {
		k := b.File(name)
		assert.Equal(t, prefix+name, k)
		assert.NoError(t, objstore.ValidKey(k))
		back, file, err := key.ParseBlockFile(k)
		require.NoError(t, err, name)
		assert.Equal(t, b, back)
		assert.Equal(t, name, file)
	}
}

func TestParseBlockFileRefuses(t *testing.T) {
	const good = "v1/t/blocks/12h/20250731T1200Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9/meta.json"
	_, _, err := key.ParseBlockFile(good)
	require.NoError(t, err)
	for _, k := range []string{
		"", "/" + good, good + "/", good + "/x", good[1:],
		strings.Replace(good, "v1", "v2", 1),
		strings.Replace(good, "/t/", "//", 1),
		strings.Replace(good, "blocks", "segments", 1),
		strings.Replace(good, "12h", "6h", 1),
		strings.Replace(good, "12h", "24h", 1), // no window of the level
		strings.Replace(good, "1200Z", "1400Z", 1),
		strings.Replace(good, "1200Z", "1201Z", 1),
		strings.Replace(good, "01K1", "01k1", 1),
		strings.Replace(good, "01K1", "81K1", 1),
		strings.Replace(good, "meta.json", "", 1),
		strings.Replace(good, "meta.json", ".json", 1),
		strings.Replace(good, "meta.json", "..", 1),
		strings.Replace(good, "meta.json", "0.json", 1),
		strings.Replace(good, "meta.json", "Meta.json", 1),
		strings.Replace(good, "meta.json", "meta_a.json", 1),
		strings.Replace(good, "meta.json", "x"+strings.Repeat("0", 64), 1),
	} {
		_, _, err := key.ParseBlockFile(k)
		assert.ErrorIs(t, err, key.ErrSyntax, "%q", k)
	}
}

func TestManifest(t *testing.T) {
	id := ulid.MustParse("01K1GZ8V6D8Q7N0XJ5W3C2B1A9")
	const want = "v1/team-a/manifests/01K1GZ8V6D8Q7N0XJ5W3C2B1A9.json"
	assert.Equal(t, "v1/team-a/manifest.json", key.Manifest("team-a"))
	assert.Equal(t, want, key.ManifestCopy("team-a", id))
	assert.True(t, strings.HasPrefix(want, key.ManifestsPrefix("team-a")))
	tenant, back, err := key.ParseManifestCopy(want)
	require.NoError(t, err)
	assert.Equal(t, "team-a", tenant)
	assert.Equal(t, id, back)
	for _, k := range []string{
		"", "/" + want, want + "/", want[1:], "v1/team-a/manifest.json",
		strings.Replace(want, "v1", "v2", 1),
		strings.Replace(want, "/team-a/", "//", 1),
		strings.Replace(want, "manifests", "manifest", 1),
		strings.Replace(want, ".json", "", 1),
		strings.Replace(want, ".json", ".parquet", 1),
		strings.Replace(want, "01K1", "01k1", 1),
		strings.Replace(want, "01K1", "01K", 1),
	} {
		_, _, err := key.ParseManifestCopy(k)
		assert.ErrorIs(t, err, key.ErrSyntax, "%q", k)
	}
}

// FuzzParseBlockFile: a key that parses is built again identically.
func FuzzParseBlockFile(f *testing.F) {
	f.Add("v1/t/blocks/12h/20250731T1200Z/01K1GZ8V6D8Q7N0XJ5W3C2B1A9/meta.json")
	f.Add("v1/t/blocks/part/00000101T0000Z/00000000000000000000000000/a")
	f.Add("v1/t/blocks/24h/99991231T0000Z/7ZZZZZZZZZZZZZZZZZZZZZZZZZ/samples-0000.parquet")
	f.Add("v1//blocks////")
	f.Fuzz(func(t *testing.T, k string) {
		b, name, err := key.ParseBlockFile(k)
		if err != nil {
			require.ErrorIs(t, err, key.ErrSyntax)
			return
		}
		require.Equal(t, k, b.File(name))
	})
}

// FuzzParseManifestCopy: a key that parses is built again identically.
func FuzzParseManifestCopy(f *testing.F) {
	f.Add("v1/t/manifests/01K1GZ8V6D8Q7N0XJ5W3C2B1A9.json")
	f.Add("v1/t/manifests/7ZZZZZZZZZZZZZZZZZZZZZZZZZ.json")
	f.Fuzz(func(t *testing.T, k string) {
		tenant, id, err := key.ParseManifestCopy(k)
		if err != nil {
			require.ErrorIs(t, err, key.ErrSyntax)
			return
		}
		require.Equal(t, k, key.ManifestCopy(tenant, id))
	})
}
