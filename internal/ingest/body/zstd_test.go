package body

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// streamed compresses as a sender that does not know the size beforehand.
func streamed(t *testing.T, text []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out)
	require.NoError(t, err)
	for len(text) > 0 { // in pieces, so that the frame's header has no size
		n := min(len(text), 1000)
		_, err = z.Write(text[:n])
		require.NoError(t, err)
		require.NoError(t, z.Flush())
		text = text[n:]
	}
	require.NoError(t, z.Close())
	return out.Bytes()
}

// unpacked decompresses into memory of the size that the headers state, or of less.
func unpacked(sent []byte, most int64) ([]byte, bool, error) {
	u, err := new(Reader).unpackerOf(Zstd, sent)
	if err != nil {
		return nil, false, err
	}
	b := make([]byte, min(u.first(), most))
	n, ended, err := u.fill(b, 0)
	return b[:n], ended, err
}

func TestZstd(t *testing.T) {
	text := bytes.Repeat([]byte("some samples, "), 30_000)
	z, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	whole, parts := z.EncodeAll(text, nil), streamed(t, text)
	skippable := []byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}
	for name, tc := range map[string]struct{ sent, want []byte }{
		"nothing":        {nil, nil},
		"empty":          {z.EncodeAll(nil, nil), nil},
		"with its size":  {whole, text},
		"without":        {parts, text},
		"several frames": {bytes.Join([][]byte{whole, skippable, parts}, nil), bytes.Repeat(text, 2)},
		"raw, repeated":  {append(z.EncodeAll([]byte("x"), nil), z.EncodeAll(make([]byte, 1<<20), nil)...), append([]byte("x"), make([]byte, 1<<20)...)},
	} {
		got, ended, err := unpacked(tc.sent, 64<<20)
		require.NoError(t, err, name)
		require.True(t, ended, name)
		require.True(t, bytes.Equal(tc.want, got), name)
	}
	for _, sent := range [][]byte{whole, parts} {
		for _, most := range []int64{1, 1000, int64(len(text)) - 1} { // the limit of a body
			got, ended, err := unpacked(sent, most)
			require.NoError(t, err)
			require.False(t, ended)
			require.Len(t, got, int(most))
		}
		for n := 1; n < len(sent); n++ {
			_, _, err := unpacked(sent[:n], 64<<20)
			require.Error(t, err, n)
		}
	}
}

func FuzzZstd(f *testing.F) {
	z, err := zstd.NewWriter(nil)
	require.NoError(f, err)
	f.Add(z.EncodeAll([]byte("some samples, some samples"), nil))
	f.Fuzz(func(t *testing.T, sent []byte) {
		got, ended, err := unpacked(sent, 1<<20)
		if err == nil && ended {
			d, _ := zstd.NewReader(nil)
			want, err := d.DecodeAll(sent, nil)
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
		}
	})
}
