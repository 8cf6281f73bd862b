package segment_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

func encode(t testing.TB) []byte {
	t.Helper()
	b, _, err := segmenttest.Encode(sampleRows(), goldenMetadata)
	require.NoError(t, err)
	return b
}

func readInfo(b []byte) (segment.Info, error) {
	return segment.ReadInfo(bytes.NewReader(b), int64(len(b)))
}

// footer returns a file with a footer of these thrift bytes.
func footer(thrift ...byte) []byte {
	b := append([]byte("PAR1"), thrift...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(thrift))), "PAR1"...)
}

// keyValues encodes a footer (field 5: list of structs of two strings) with the pairs.
func keyValues(kv ...string) []byte {
	b := []byte{0x59, byte(len(kv)/2)<<4 | 0x0c}
	for i := 0; i < len(kv); i += 2 {
		b = append(binary.AppendUvarint(append(b, 0x18), uint64(len(kv[i]))), kv[i]...)
		b = append(binary.AppendUvarint(append(b, 0x18), uint64(len(kv[i+1]))), kv[i+1]...)
		b = append(b, 0)
	}
	return footer(append(b, 0)...)
}

const versionKey, infoKey, metadataKey = "promlake.segment.version", "promlake.segment.info", "promlake.segment.metadata"

func TestReadInfoOfForeignFiles(t *testing.T) {
	var foreign bytes.Buffer
	require.NoError(t, parquet.Write(&foreign, []struct{ A int }{{1}, {2}}))
	nested := func(n int, b byte) []byte { return bytes.Repeat([]byte{b}, n) }
	whole := encode(t)
	for _, tc := range []struct {
		name, want string
		file       []byte
	}{
		{"empty", "0 bytes", nil},
		{"too short", "8 bytes", []byte("PAR1PAR1")},
		{"no Parquet", "no Parquet magic", bytes.Repeat([]byte("text "), 100)},
		{"cut short", "no Parquet magic", whole[:len(whole)-1]},
		{"footer longer than the file", "footer of 255", append([]byte("PAR1\x00\xff\x00\x00\x00"), "PAR1"...)},
		{"footer over the first magic", "footer of 2", append([]byte("PAR1\x00\x02\x00\x00\x00"), "PAR1"...)},
		{"empty footer", "decode footer", footer()},
		{"other Parquet file", "it has no version", foreign.Bytes()},
		{"no info", "decode info", keyValues(versionKey, "1")},
		{"broken info", "decode info", keyValues(versionKey, "1", infoKey, `{"rows":"x"}`)},
		{"broken metadata", "decode metadata", keyValues(versionKey, "1", infoKey, "{}", metadataKey, "[")},
		{"list longer than the footer", "decode footer", footer(0x59, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07)},
		{"string longer than the footer", "decode footer", footer(0x59, 0x1c, 0x18, 0xff, 0xff, 0xff, 0xff, 0x07)},
		{"key-value list of numbers", "list of", footer(0x59, 0x16, 0x02, 0x00)},
		{"skipped list longer than the footer", "decode footer", footer(0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07)},
		{"skipped list of booleans longer than the footer", "decode footer", footer(0x29, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x07)},
		{"skipped map longer than the footer", "decode footer", footer(0x1b, 0xff, 0xff, 0xff, 0xff, 0x07, 0x88)},
		{"structs without end", "nested too deeply", footer(nested(1<<20, 0x1c)...)},
		{"lists without end", "nested too deeply", footer(append([]byte{0x19}, nested(1<<20, 0x19)...)...)},
		{"unknown type", "unknown thrift type 14", footer(0x1e)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := readInfo(tc.file)
			require.ErrorIs(t, err, segment.ErrFormat)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := readInfo(keyValues(versionKey, "1", infoKey, "{}"))
	require.NoError(t, err)
	for _, v := range []string{"3", "1x"} {
		_, err := readInfo(keyValues(versionKey, v, infoKey, "{}"))
		require.ErrorIs(t, err, checksum.ErrUnknownVersion, v)
		require.NotErrorIs(t, err, segment.ErrFormat, v)
	}
}

// TestReadInfoOfDamagedFiles truncates a footer and flips every byte of it: every error is
// ErrFormat, and nothing panics.
func TestReadInfoOfDamagedFiles(t *testing.T) {
	whole := encode(t)
	for n := range whole {
		_, err := readInfo(whole[:n])
		require.ErrorIs(t, err, segment.ErrFormat, "the first %d bytes", n)
		_, err = readInfo(whole[n+1:])
		if err != nil {
			require.ErrorIs(t, err, segment.ErrFormat, "without the first %d bytes", n+1)
		}
	}
	rng := rand.New(rand.NewPCG(4, 4))
	refused := 0
	for range 5000 {
		b := bytes.Clone(whole)
		for range 1 + rng.IntN(3) {
			b[rng.IntN(len(b))] ^= 1 << rng.IntN(8)
		}
		if _, err := readInfo(b); err != nil {
			require.ErrorIs(t, err, segment.ErrFormat)
			refused++
		}
	}
	require.Greater(t, refused, 500)
}

// TestReadInfoOfLongFooter reads footers around the length that ReadInfo reads first.
func TestReadInfoOfLongFooter(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	large := segment.Row{Labels: labels.FromStrings(model.MetricNameLabel, "zzz")} // a megabyte that does not compress
	for i := range int64(140_000) {
		large.Floats = append(large.Floats, segment.Float{T: i, V: rng.Float64()})
	}
	t.Run("small file", func(t *testing.T) { readLongFooters(t, sampleRows(), segment.LeastTail) })
	t.Run("large file", func(t *testing.T) { readLongFooters(t, append(sampleRows(), large), segment.TailGuess) })
}

// readLongFooters reads footers of files of rows whose lengths are around guess.
func readLongFooters(t *testing.T, rows []segment.Row, guess int) {
	base, _, err := segmenttest.Encode(rows, []segment.Metadata{{Metric: "m"}})
	require.NoError(t, err)
	footerLen := func(b []byte) int { return int(binary.LittleEndian.Uint32(b[len(b)-8:])) }
	for _, total := range []int{guess - 2, guess - 1, guess, guess + 1, 10 * guess} {
		pad := total - 8 - footerLen(base) - 2 // the longer length takes 2 more bytes itself
		meta := []segment.Metadata{{Metric: "m", Help: strings.Repeat("h", pad)}}
		b, info, err := segmenttest.Encode(rows, meta)
		require.NoError(t, err)
		require.InDelta(t, total, footerLen(b)+8, 2)
		got, err := readInfo(b)
		require.NoError(t, err)
		require.Equal(t, info, got)
	}
}

type failingReader struct{ err error }

func (r failingReader) ReadAt([]byte, int64) (int, error) { return 0, r.err }

// TestReadInfoPassesReadErrors distinguishes a failing store from a damaged file.
func TestReadInfoPassesReadErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	_, err := segment.ReadInfo(failingReader{broken}, 1000)
	require.ErrorIs(t, err, broken)
	require.NotErrorIs(t, err, segment.ErrFormat)
}

// FuzzReadInfo uses its input as a file, and as the thrift bytes of a footer.
func FuzzReadInfo(f *testing.F) {
	whole := encode(f)
	for _, n := range []int{0, 1, 8, len(whole) / 2} {
		f.Add(whole[n:])
	}
	f.Add(whole[len(whole)-8-int(binary.LittleEndian.Uint32(whole[len(whole)-8:])) : len(whole)-8])
	small := keyValues(versionKey, "1", infoKey, "{}")
	f.Add(small[4 : len(small)-8])
	f.Add([]byte{0x59, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, file := range [][]byte{b, footer(b...)} {
			if _, err := readInfo(file); err != nil {
				require.ErrorIs(t, err, segment.ErrFormat)
			}
		}
	})
}

// FuzzEncode encodes random rows of a seed and decodes them with parquet-go.
func FuzzEncode(f *testing.F) {
	f.Add(uint64(1), uint8(10), uint8(3), uint16(20))
	f.Add(uint64(2), uint8(200), uint8(255), uint16(1))
	f.Fuzz(func(t *testing.T, seed uint64, n, groupRows uint8, groupSamples uint16) {
		rows := newRandom(seed).rows(int(n))
		b, info, err := encodeInGroups(rows, nil, 1+int(groupRows), 1+int(groupSamples))
		require.NoError(t, err)
		require.Equal(t, expect(t, rows), parquetRows(t, b))
		again, err := readInfo(b)
		require.NoError(t, err)
		require.Equal(t, info, again)
	})
}

// FuzzDecodeSamples feeds the decoders of nested columns; what they accept they can encode.
func FuzzDecodeSamples(f *testing.F) {
	for _, r := range sampleRows() {
		for _, h := range r.Hists {
			b, err := segment.EncodeHist(h)
			require.NoError(f, err)
			f.Add(b)
		}
	}
	f.Add([]byte(`{"trace_id":"1"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := segment.DecodeHist(b); err == nil {
			require.NotEqual(t, h.H == nil, h.FH == nil, fmt.Sprint(h))
			_, err := segment.EncodeHist(h)
			require.NoError(t, err)
		}
		if l, err := segment.DecodeExemplarLabels(b); err == nil {
			_ = l.String()
		}
	})
}
