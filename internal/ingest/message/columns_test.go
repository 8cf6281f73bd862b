package message

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const (
	someTime = remotewritetest.SomeTime
	limit    = 256 << 20 // bytes of memory
)

var protocols = []remotewrite.Protocol{remotewrite.V1, remotewrite.V2}

// decoded decodes items as a request of someTime.
func decoded(t testing.TB, version remotewrite.Protocol, items []remotewritetest.Item) *remotewrite.Batch {
	msg := remotewritetest.Message(t, version, items)
	b, err := remotewrite.Decode(version, msg, remotewrite.NewGeneration(1), remotewritetest.Rules(), remotewrite.NewRoom(len(msg), limit, limit, nil))
	require.NoError(t, err)
	return b
}

func columnsOf(t testing.TB, version remotewrite.Protocol, items []remotewritetest.Item) ([]byte, remotewrite.Tally) {
	b := decoded(t, version, items)
	p := &packer{byNames: map[string]uint32{}}
	columns, err := p.pack(b)
	require.NoError(t, err)
	return columns, remotewrite.TallyOf(b)
}

// unpacked reads columns with a table of their own.
func unpacked(columns []byte, holds remotewrite.Tally) (*remotewrite.Batch, error) {
	limits := remotewrite.DefaultLimits()
	m := &Message{Received: time.UnixMilli(someTime), Holds: holds}
	return new(unpacker).decode(columns, m, remotewrite.NewGeneration(2), &limits, limit)
}

// said is the whole content of a batch, in its order.
func said(t testing.TB, b *remotewrite.Batch) []string {
	view := b.Generation.Table.View()
	name := func(r uint32) string {
		var l []string
		for _, p := range view.Pairs(series.Ref(r)) {
			l = append(l, view.Names[p.Name], view.Values[p.Name][p.Value])
		}
		return fmt.Sprintf("%s%v", view.Metrics[view.Metric(series.Ref(r))], labels.FromStrings(l...))
	}
	var out []string
	for i, f := range b.Floats {
		s := segment.Float{T: f.T, V: f.V}
		if b.Starts != nil {
			s.ST = b.Starts[i]
		}
		out = append(out, name(uint32(f.Ref))+" "+remotewritetest.FloatText(s))
	}
	for _, h := range b.Hists {
		blob, err := segment.EncodeHist(h.Hist)
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("%s %d %d %x", name(uint32(h.Ref)), h.ST, h.T, blob))
	}
	for _, e := range b.Exemplars {
		out = append(out, name(uint32(e.Ref))+" "+remotewritetest.ExemplarText(e.Exemplar))
	}
	for _, m := range b.Metadata {
		out = append(out, fmt.Sprintf("%q", m))
	}
	return append(out, fmt.Sprint(b.MinT, b.MaxT))
}

// TestColumns packs requests and reads them, and packs parts of them and reads those: nothing
// changes.
func TestColumns(t *testing.T) {
	p := &packer{byNames: map[string]uint32{}}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		items := remotewritetest.RandomItems(rng)
		if seed%3 == 0 {
			items = append(items, remotewritetest.Everything()...)
		}
		b := decoded(t, protocols[seed%2], items)
		columns, err := p.pack(b)
		require.NoError(t, err)
		got, err := unpacked(columns, remotewrite.TallyOf(b))
		require.NoError(t, err)
		require.Equal(t, said(t, b), said(t, got))

		all := []string{}
		for from := 0; from < b.Len(); {
			to := min(b.Len(), from+1+rng.IntN(10))
			part := b.Part(from, to)
			columns, err := p.pack(&part)
			require.NoError(t, err)
			got, err := unpacked(columns, remotewrite.TallyOf(&part))
			require.NoError(t, err)
			s := said(t, got)
			all, from = append(all, s[:len(s)-1]...), to
		}
		whole := said(t, b)
		require.Equal(t, whole[:len(whole)-1], all)
	}
}

// TestGoldenColumns pins the columns' bytes, section by section.
func TestGoldenColumns(t *testing.T) {
	one := remotewritetest.Gauge("m", segment.Float{T: someTime, V: 1, ST: someTime - 1}, remotewritetest.At(someTime+1, 2))
	one.Meta = segment.Metadata{Metric: "m", Type: "gauge", Help: "h", Unit: "s"}
	one.Exemplars = []exemplar.Exemplar{{Ts: someTime, HasTs: true, Value: 3, Labels: labels.FromStrings("id", "x")}}
	h := remotewritetest.Gauge("h")
	h.Lset = append(h.Lset, "zone", "eu")
	h.Hists = []segment.Hist{{T: someTime, H: &histogram.Histogram{Count: 1, Sum: 1, PositiveSpans: []histogram.Span{{Length: 1}}, PositiveBuckets: []int64{1}}}}
	got, _ := columnsOf(t, remotewrite.V2, []remotewritetest.Item{one, remotewritetest.Gauge("n", remotewritetest.At(someTime, 4)), h})
	require.Equal(t, strings.Join([]string{
		"03", "085f5f6e616d655f5f", "036a6f62", "047a6f6e65", // names: __name__, job, zone
		"02", "02" + "0001", "03" + "000102", // shapes
		"03" + "016d" + "016e" + "0168", "01" + "0474657374", "01" + "026575", // values: m, n, h; test; eu
		"03", "000001", "0000", "0200", "020000", // series: shapes, then the rows
		"02", "0002", "0001", // runs
		"80a0abfef962", "02", "01", // times
		"000000000000f03f", "0000000000000040", "0000000000001040", // values
		"01", "fe9fabfef962", "fd9fabfef962", "00", // start timestamps
		"01", "04", "1b" + "080119000000000000f03f30005a0210016201027880d095ffbc31", // histograms
		"01", "00", "80a0abfef962", "0000000000000840", "01" + "026964" + "0178", // exemplars
		"01", "016d", "056761756765", "0168", "0173", // metadata
	}, ""), hex.EncodeToString(got))
}

// TestDamagedColumns truncates columns at every length and changes each of their bytes: they are
// refused, or their content can be packed again.
func TestDamagedColumns(t *testing.T) {
	columns, holds := columnsOf(t, remotewrite.V2, append(remotewritetest.FuzzItems(), remotewritetest.Everything()...))
	for n := range columns {
		_, err := unpacked(columns[:n], holds)
		require.ErrorIs(t, err, ErrUnreadable, "%d bytes", n)
	}
	_, err := unpacked(append(slices.Clone(columns), 0), holds)
	require.ErrorContains(t, err, "1 bytes behind its end")
	for at := range columns {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			damaged := slices.Clone(columns)
			damaged[at] ^= flip
			requireStable(t, damaged, holds)
		}
	}
}

// requireStable requires that columns are refused, or that their content is unchanged after it is
// packed and unpacked again.
func requireStable(t testing.TB, columns []byte, holds remotewrite.Tally) {
	b, err := unpacked(columns, holds)
	if err != nil {
		require.True(t, errors.Is(err, ErrUnreadable) || errors.Is(err, errRefused), "%v", err)
		return
	}
	require.Equal(t, holds, remotewrite.TallyOf(b))
	p := &packer{byNames: map[string]uint32{}}
	first, err := p.pack(b)
	require.NoError(t, err)
	again, err := unpacked(first, holds)
	require.NoError(t, err)
	require.Equal(t, said(t, b), said(t, again))
	first = slices.Clone(first)
	second, err := p.pack(again)
	require.NoError(t, err)
	require.Equal(t, first, second)
}

// TestDenseColumns reads columns that would take much memory, or that claim to.
func TestDenseColumns(t *testing.T) {
	many := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	const most = 1 << 20
	for _, tc := range []struct {
		name    string
		columns []byte
		want    string
	}{
		{"names", append(many(most), make([]byte, most)...), "would take more than"},
		{"more names than bytes", append(many(most), make([]byte, most-1)...), "things of 1 bytes in"},
		{"shapes", slices.Concat([]byte{0}, many(most), make([]byte, most)), "it ends within a field"},
		{"values", slices.Concat([]byte{1, 1, 'a', 0}, many(most), make([]byte, most)), "it ends within a field"},
		{"huge count", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, "things of 1 bytes in 0"},
		{"long number", []byte{0x80, 0}, "longer than it need be"},
		{"overflow", []byte(strings.Repeat("\xff", 11)), "a number is too large"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var err error
			require.Less(t, allocated(func() { _, err = unpacked(tc.columns, remotewrite.Tally{}) }), uint64(roomBase+roomPerByte*most))
			require.ErrorIs(t, err, ErrUnreadable)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// FuzzColumns reads any columns.
func FuzzColumns(f *testing.F) {
	for _, version := range protocols {
		for _, items := range [][]remotewritetest.Item{remotewritetest.FuzzItems(), remotewritetest.Everything(), remotewritetest.RandomItems(rand.New(rand.NewPCG(1, 2)))} {
			columns, holds := columnsOf(f, version, items)
			f.Add(columns, holds.Floats, holds.Hists, holds.Exemplars)
		}
	}
	f.Fuzz(func(t *testing.T, columns []byte, floats, hists, exemplars int) {
		requireStable(t, columns, remotewrite.Tally{Floats: floats, Hists: hists, Exemplars: exemplars})
	})
}
