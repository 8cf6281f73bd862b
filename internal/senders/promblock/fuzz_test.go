package promblock_test

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/tsdb/tombstones"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/promblock"
	"github.com/promlake/promlake/internal/store/live"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

// FuzzReadMeta holds that what is read of a meta.json is a block that can be identified.
func FuzzReadMeta(f *testing.F) {
	f.Add([]byte(`{"ulid":"01M830A8Q5FDT227PX59J0YKC3","version":1,"minTime":0,"maxTime":7200000,"stats":{"numSamples":1},"compaction":{"level":1,"sources":["01M830A8Q5FDT227PX59J0YKC3"]}}`))
	f.Add([]byte(`{"ulid":"01M830A8Q5FDT227PX59J0YKC3","version":1,"thanos":{"labels":{"a":"b","__c":"d"},"downsample":{"resolution":300000},"files":[{"rel_path":"index","size_bytes":3}]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		m, err := promblock.ReadMeta(body)
		if err != nil {
			require.ErrorIs(t, err, promblock.ErrFormat)
			return
		}
		for _, l := range m.External() {
			require.NotEmpty(t, l.Value)
			require.NotContains(t, l.Name[:min(2, len(l.Name))], "__")
		}
		again, err := json.Marshal(m)
		require.NoError(t, err)
		same, err := promblock.ReadMeta(again)
		require.NoError(t, err)
		require.Equal(t, m.External(), same.External())
		require.Equal(t, m.Skip(), same.Skip())
	})
}

// everyKind has a series of each kind of chunk.
func everyKind() []promblocktest.Series {
	all := []promblocktest.Series{
		{Labels: labels.FromStrings("__name__", "floats", "job", "x")},
		{Labels: labels.FromStrings("__name__", "integers")},
		{Labels: labels.FromStrings("__name__", "histograms", "job", "x")},
	}
	for i := range int64(20) {
		h := &histogram.Histogram{
			Schema: 1, Count: uint64(3 * i), Sum: float64(i), ZeroThreshold: 0.001, ZeroCount: uint64(i),
			PositiveSpans: []histogram.Span{{Offset: 2, Length: 1}, {Offset: 1, Length: 1}}, PositiveBuckets: []int64{i, 0},
		}
		all[0].Samples = append(all[0].Samples, promblocktest.Sample{Time: 1000 * i, V: float64(i) * 1.1})
		all[1].Samples = append(all[1].Samples, promblocktest.Sample{Time: 1000 * i, H: h})
		all[2].Samples = append(all[2].Samples, promblocktest.Sample{Time: 1000 * i, FH: h.ToFloat(nil)})
	}
	return all
}

var blockFiles = []string{"index", filepath.Join("chunks", "000001"), "tombstones"}

// FuzzBlock changes a file of a block and repairs its checksums, as a client could that uploads it.
// Whatever the bytes are, a block is read or refused.
func FuzzBlock(f *testing.F) {
	dir := promblocktest.Write(f, f.TempDir(), 0, 60_000, everyKind())
	stones := tombstones.NewMemTombstones()
	stones.AddInterval(1, tombstones.Interval{Mint: 3000, Maxt: 5000})
	_, err := tombstones.WriteFile(slog.New(slog.DiscardHandler), dir, stones)
	require.NoError(f, err)
	files := map[string][]byte{}
	for _, name := range append([]string{"meta.json"}, blockFiles...) {
		files[name], err = os.ReadFile(filepath.Join(dir, name))
		require.NoError(f, err)
	}
	for i, name := range blockFiles {
		whole := append([]byte(nil), files[name]...)
		repair(name, whole)
		require.Equal(f, files[name], whole, "repair knows the format")
		for at := 0; at < len(files[name]); at += 13 {
			f.Add(uint8(i), uint16(at), []byte{0xff}, at%2 == 0)
		}
	}
	f.Fuzz(func(t *testing.T, file uint8, at uint16, patch []byte, cut bool) {
		name := blockFiles[int(file)%len(blockFiles)]
		raw := append([]byte(nil), files[name]...)
		copy(raw[int(at)%len(raw):], patch)
		if cut && len(patch) > 8 {
			raw = raw[:int(at)%len(raw)]
		}
		repair(name, raw)
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, "chunks"), 0o700))
		for other, bytes := range files {
			if other == name {
				bytes = raw
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, other), bytes, 0o600))
		}
		readAll(t, dir)
	})
}

// readAll reads all samples of a block, which may be none. Nothing but errors of this package comes
// of it, and no series with labels that the store could not have.
func readAll(t *testing.T, dir string) {
	t.Helper()
	b, err := promblock.Open(dir, promblock.Options{Skip: func(c *promblock.CorruptError) bool { return c.Offset%2 == 0 }})
	if err != nil {
		require.ErrorIs(t, err, promblock.ErrFormat)
		return
	}
	defer func() { require.NoError(t, b.Close()) }()
	n := 0
	rows, err := b.Scan(t.Context(), 1000, 50_000, func(lset []series.Label, _ int64) (series.Ref, bool, error) {
		for i, l := range lset {
			require.NotEmpty(t, l.Value)
			require.True(t, i == 0 || lset[i-1].Name < l.Name)
		}
		n++
		return series.Ref(n - 1), true, nil
	})
	if err != nil {
		require.ErrorIs(t, err, promblock.ErrFormat)
		return
	}
	for i := range rows.Len() {
		var run live.Run
		hists, err := rows.Read(i, &run, nil)
		if err != nil {
			var corrupt *promblock.CorruptError
			require.ErrorAs(t, err, &corrupt)
			continue
		}
		require.Len(t, run.V, len(run.TS))
		inRange(t, len(run.TS), func(i int) int64 { return run.TS[i] })
		inRange(t, len(hists), func(i int) int64 { return hists[i].T })
		for _, h := range hists {
			require.True(t, (h.H == nil) != (h.FH == nil))
		}
	}
}

// inRange holds that times ascend within what was asked for.
func inRange(t *testing.T, n int, at func(int) int64) {
	t.Helper()
	for i := range n {
		require.True(t, at(i) >= 1000 && at(i) < 50_000)
		require.True(t, i == 0 || at(i-1) < at(i))
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// repair makes the checksums of a file match again, as far as its lengths make sense.
func repair(name string, raw []byte) {
	switch name {
	case "index":
		repairIndex(raw)
	case "tombstones":
		if n := len(raw) - 4; n >= 5 {
			binary.BigEndian.PutUint32(raw[n:], crc32.Checksum(raw[5:n], castagnoli))
		}
	default:
		for at := 8; at < len(raw); { // length, encoding and data, checksum
			size, n := binary.Uvarint(raw[at:])
			at = seal(raw, at+n, size+1, n <= 0)
		}
	}
}

// repairIndex repairs the sections with a length of four bytes, the series, and the table of
// contents.
func repairIndex(raw []byte) {
	toc := len(raw) - 6*8 - 4
	if toc < 0 {
		return
	}
	var offsets [6]uint64 // symbols, series, label indices, their table, postings, their table
	for i := range offsets {
		offsets[i] = binary.BigEndian.Uint64(raw[toc+8*i:])
	}
	within := func(i int) int { return int(min(offsets[i], uint64(toc))) }
	fixed := func(at int) int {
		if at < 0 || at+4 > toc {
			return toc
		}
		return seal(raw[:toc], at+4, uint64(binary.BigEndian.Uint32(raw[at:])), false)
	}
	for _, section := range []int{0, 3, 5} {
		fixed(within(section))
	}
	for at := aligned(within(4), 4); at < within(5); {
		at = aligned(fixed(at), 4)
	}
	for at := aligned(within(1), 16); at < within(2); {
		size, n := binary.Uvarint(raw[at:toc])
		at = aligned(seal(raw[:toc], at+n, size, n <= 0), 16)
	}
	binary.BigEndian.PutUint32(raw[len(raw)-4:], crc32.Checksum(raw[toc:len(raw)-4], castagnoli))
}

func aligned(at, to int) int { return (at + to - 1) / to * to }

// seal puts the checksum of size bytes behind them, and returns where it ends. If there is no room,
// or the length is no number, it returns the end of raw.
func seal(raw []byte, at int, size uint64, bad bool) int {
	if bad || size > uint64(len(raw)) || at+int(size)+4 > len(raw) {
		return len(raw)
	}
	end := at + int(size)
	binary.BigEndian.PutUint32(raw[end:], crc32.Checksum(raw[at:end], castagnoli))
	return end + 4
}
