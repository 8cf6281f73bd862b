package catalog_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
)

// bothWays decodes the JSON of a manifest, with the right checksum, as it is and after a space,
// with which no manifest is written, and expects the same.
func bothWays(t *testing.T, body []byte) (m catalog.Manifest, ok bool) {
	t.Helper()
	decode := func(body []byte) (catalog.Manifest, error) {
		sealed, err := checksum.Append(body)
		require.NoError(t, err)
		return catalog.Decode(sealed)
	}
	m, err := decode(body)
	other, otherErr := decode(append([]byte{' '}, body...))
	if otherErr != nil {
		require.EqualError(t, err, otherErr.Error(), "%s", body)
		return m, false
	}
	require.NoError(t, err, "%s", body)
	require.Equal(t, other, m, "%s", body)
	return m, true
}

// unsealed returns the JSON of a manifest without its checksum.
func unsealed(t *testing.T, m catalog.Manifest) []byte {
	t.Helper()
	b, err := catalog.Encode(m)
	require.NoError(t, err)
	return append(b[:len(b)-len(`,"crc32c":"12345678"}`)-1], '}')
}

// TestDecodePlainManifests: manifests as they are written decode to what they are, and to what they
// are with white space.
func TestDecodePlainManifests(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		m := catalog.Empty()
		if n := r.IntN(5); n > 0 {
			m.Generation, m.ID, m.Parent = 1+r.Uint64N(1<<r.IntN(62)), id(time.Hour, byte(n)), id(time.Minute)
			m.Oldest = catalog.Floor{Point: catalog.Point{Generation: m.Generation, ID: m.ID}, At: r.Int64N(2) * t0.UnixMilli(), Raised: r.Uint64N(2) * m.Generation}
		}
		for i := range r.IntN(4) {
			s := sid(i, time.Duration(i)*time.Minute)
			s.Queued = r.IntN(2) == 0
			m.Consumed = append(m.Consumed, catalog.Consumed{SegmentID: s, At: r.Int64N(1 << 50), Generation: r.Uint64N(99), Gone: r.Uint64N(2) * r.Uint64N(1<<60)})
		}
		for i := range r.IntN(4) {
			b := blk(key.L2h, i, time.Minute, time.Second)
			if b.MinT, b.MaxT = 1, -r.Int64N(1<<50); i == 0 {
				b = blk(key.Part, i, time.Minute, time.Second)
			}
			if r.IntN(4) == 0 {
				b = sliced(b, r.IntN(3), 3)
			}
			m.Blocks = append(m.Blocks, b)
			m.Retired = append(m.Retired, catalog.Retired{BlockID: b.BlockID(), At: r.Int64N(1 << 50), Generation: r.Uint64N(99), Gone: r.Uint64N(2)})
		}
		back, ok := bothWays(t, unsealed(t, m))
		require.True(t, ok)
		require.Equal(t, m, back)
	}
	back, ok := bothWays(t, unsealed(t, everything(t)))
	require.True(t, ok)
	require.Equal(t, everything(t), back)
}

// TestDecodeChangedManifests changes each byte of a manifest: what is not as it is written is
// refused, or decodes as any JSON does.
func TestDecodeChangedManifests(t *testing.T) {
	m := chain(t,
		replace(3*minute, segments(sid(0, 1*sec), sid(0, 2*sec)), blk(key.L2h, 0, 3*minute, 2*sec)),
		replace(4*minute, blocks(blk(key.L2h, 0, 3*minute, 2*sec)), blk(key.L24h, 0, 4*minute, 2*sec)),
	)
	body := unsealed(t, m)
	good := 0
	for at := range body[:len(body)-1] {
		for _, with := range []string{"", `"`, `\`, "0", "-", "9", "}", "]", ",", " ", "x", "\x01", "\xff", string(body[at]) + string(body[at])} {
			if _, ok := bothWays(t, slices.Concat(body[:at], []byte(with), body[at+1:])); ok {
				good++
			}
		}
	}
	require.Greater(t, good, 100)
}
