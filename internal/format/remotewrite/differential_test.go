package remotewrite_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/prompb"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

var protocols = []remotewrite.Protocol{remotewrite.V1, remotewrite.V2}

// ours decodes a message with the decoder under test.
func ours(g *remotewrite.Generation, version remotewrite.Protocol, msg []byte) (remotewritetest.Samples, *remotewrite.Batch, error) {
	const limit = 256 << 20
	room := remotewrite.NewRoom(len(msg), limit, limit, nil)
	b, err := remotewrite.Decode(version, msg, g, remotewritetest.Rules(), room)
	if err != nil {
		return nil, nil, err
	}
	out := remotewritetest.Samples{}
	v := g.Table.View()
	for i, f := range b.Floats {
		st := int64(0)
		if b.Starts != nil {
			st = b.Starts[i]
		}
		out.Add(remotewritetest.FloatsOf+remotewritetest.Labels(&v, f.Ref), remotewritetest.FloatText(segment.Float{T: f.T, V: f.V, ST: st}))
	}
	for _, h := range b.Hists {
		out.Add(remotewritetest.HistsOf+remotewritetest.Labels(&v, h.Ref), remotewritetest.HistBytes(h.Hist))
	}
	return out, b, nil
}

// differs decodes one message with both decoders and compares the results, twice: with unknown
// series and with known ones. It returns the difference, or "".
//
// Some differences are intended. Only this decoder refuses a message that uses protobuf's groups, a
// tag above 32 bits, a varint above 64 bits, a first symbol that is not empty, packed references
// that end in the middle of one (upstream reads beyond their end), fields that are too dense, or in
// a 1.0 histogram the field that only 2.0 has. Only upstream refuses a message that is broken in
// the metadata of a series that is refused anyway.
func differs(version remotewrite.Protocol, msg []byte) string {
	return differsIn(remotewrite.NewGeneration(7), version, msg)
}

// differsIn is differs for a generation that knows some series.
func differsIn(g *remotewrite.Generation, version remotewrite.Protocol, msg []byte) string {
	for range 2 {
		got, b, err := ours(g, version, msg)
		want, wantErr := remotewritetest.Upstream(version, msg)
		var dense *remotewrite.DenseError
		var refused *remotewrite.Rejection
		switch {
		case errors.As(err, &dense), errors.As(err, &refused):
			return ""
		case err != nil && wantErr == nil:
			for _, meant := range []string{"protobuf wire type", "protobuf field tag", "overflows", "the first symbol", "symbol references: truncated", "for field StartTimestamp"} {
				if strings.Contains(err.Error(), meant) {
					return ""
				}
			}
			return fmt.Sprintf("refused here alone: %v", err)
		case err == nil && wantErr != nil:
			if version == remotewrite.V2 && b.Rejected > 0 {
				return ""
			}
			return fmt.Sprintf("refused there alone: %v", wantErr)
		case err != nil:
			return ""
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("here:  %v\nthere: %v", got, want)
		}
		b.Release()
	}
	return ""
}

// TestDecodersAgree compares the decoder with upstream's on random messages, as they are and with
// bits flipped.
func TestDecodersAgree(t *testing.T) {
	for _, version := range protocols {
		refused := 0
		for seed := range uint64(250) {
			rng := rand.New(rand.NewPCG(seed, 5))
			msg := remotewritetest.Message(t, version, remotewritetest.RandomItems(rng))
			require.Empty(t, differs(version, msg), "seed %d", seed)
			if len(msg) == 0 {
				continue
			}
			for range 30 {
				bad := append([]byte(nil), msg...)
				for range 1 + rng.IntN(3) {
					bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
				}
				if rng.IntN(8) == 0 {
					bad = bad[:rng.IntN(len(bad))]
				}
				require.Empty(t, differs(version, bad), "seed %d: %x", seed, bad)
				if _, err := remotewritetest.Upstream(version, bad); err != nil {
					refused++
				}
			}
		}
		require.Greater(t, refused, 1000, "most flips should be noticed")
	}
}

// TestKnownSeriesAgree is TestDecodersAgree for messages of series that were sent before in the
// same order, of which the decoder skips the labels.
func TestKnownSeriesAgree(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		g := remotewrite.NewGeneration(seed)
		message := func() []byte {
			var req prompb.WriteRequest
			for i := range 20 {
				s := prompb.TimeSeries{Labels: []prompb.Label{{Name: "__name__", Value: "m"}, {Name: "i", Value: strings.Repeat("x", i*i)}}}
				for range rng.IntN(4) {
					t := remotewritetest.SomeTime - rng.Int64()>>rng.IntN(63)
					if rng.IntN(9) == 0 {
						t = []int64{0, 1, -1, 127, 128}[rng.IntN(5)]
					}
					s.Samples = append(s.Samples, prompb.Sample{Timestamp: t, Value: rng.NormFloat64() * float64(rng.IntN(2))})
				}
				if rng.IntN(9) == 0 {
					s.Exemplars = []prompb.Exemplar{{Value: 1, Timestamp: remotewritetest.SomeTime}}
				}
				req.Timeseries = append(req.Timeseries, s)
			}
			msg, err := req.Marshal()
			require.NoError(t, err)
			return msg
		}
		for range 30 {
			msg := message()
			require.Empty(t, differsIn(g, remotewrite.V1, msg), "seed %d: %x", seed, msg)
			for range 1 + rng.IntN(3) {
				msg[rng.IntN(len(msg))] ^= 1 << rng.IntN(8)
			}
			require.Empty(t, differsIn(g, remotewrite.V1, msg), "seed %d: %x", seed, msg)
		}
	}
}

// TestEncodingsOfOneSeries: however a label set is written, it has one reference, whichever way of
// writing it comes first.
func TestEncodingsOfOneSeries(t *testing.T) {
	field := func(num byte, data []byte, long bool) []byte {
		if long { // the length takes a byte more than it needs
			return append([]byte{num<<3 | 2, byte(len(data)) | 0x80, byte(len(data) >> 7)}, data...)
		}
		return append(binary.AppendUvarint([]byte{num<<3 | 2}, uint64(len(data))), data...)
	}
	label := func(name, value string, long bool) []byte {
		return field(1, append(field(1, []byte(name), long), field(2, []byte(value), long)...), false)
	}
	const sets = 40
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		g := remotewrite.NewGeneration(seed)
		known := map[int]series.Ref{}
		later := rng.IntN(300) // up to here all are written alike
		for step := range 300 {
			i, other := rng.IntN(sets), 0
			if step > later {
				other = rng.IntN(4)
			}
			ts := label("__name__", "m", other == 1)
			if other == 2 {
				ts = append(ts, label("a", "", false)...) // absent
			}
			ts = append(ts, label("i", strings.Repeat("x", 5*i+1), false)...)
			if other == 3 {
				ts = append(ts, label("z", "", false)...)
			}
			ts = append(ts, field(2, binary.AppendUvarint([]byte{2 << 3}, uint64(remotewritetest.SomeTime)), false)...)
			b, err := remotewrite.Decode(remotewrite.V1, field(1, ts, false), g, remotewritetest.Rules(), remotewrite.NewRoom(1<<20, 1<<20, 1<<20, nil))
			require.NoError(t, err)
			require.NoError(t, b.Err)
			ref := b.Floats[0].Ref
			if want, ok := known[i]; ok {
				require.Equal(t, want, ref, "seed %d, step %d", seed, step)
			}
			known[i] = ref
			b.Release()
		}
		require.Equal(t, len(known), g.Table.Len())
	}
}

// TestKnownAmongNewSeries: series of messages, of which some were sent before and others come in
// long runs for the first time, have one reference each.
func TestKnownAmongNewSeries(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 8))
		g := remotewrite.NewGeneration(seed)
		known := map[int]series.Ref{}
		for range 20 {
			var req prompb.WriteRequest
			var sent []int
			for range 1 + rng.IntN(4) {
				first, n := rng.IntN(2000), rng.IntN(60)
				for i := first; i < first+n; i++ {
					sent = append(sent, i)
					req.Timeseries = append(req.Timeseries, prompb.TimeSeries{
						Labels:  []prompb.Label{{Name: "__name__", Value: "m"}, {Name: "i", Value: strconv.Itoa(i)}},
						Samples: []prompb.Sample{{Timestamp: remotewritetest.SomeTime, Value: 1}},
					})
				}
			}
			msg, err := req.Marshal()
			require.NoError(t, err)
			b, err := remotewrite.Decode(remotewrite.V1, msg, g, remotewritetest.Rules(), remotewrite.NewRoom(1<<20, 1<<20, 1<<20, nil))
			require.NoError(t, err)
			for k, i := range sent {
				if want, ok := known[i]; ok {
					require.Equal(t, want, b.Floats[k].Ref, "seed %d, series %d", seed, i)
				}
				known[i] = b.Floats[k].Ref
			}
			b.Release()
			require.Equal(t, len(known), g.Table.Len())
		}
	}
}

// TestRepeatedMetadata: a series with several metadata fields has what they have together, and a
// broken one among them breaks the message.
func TestRepeatedMetadata(t *testing.T) {
	message := func(metadata ...string) []byte {
		series := []byte{0x0a, 2, 1, 2, 0x12, 2, 0x10, 1} // labels_refs, sample
		for _, m := range metadata {
			series = append(append(series, 0x2a, byte(len(m))), m...)
		}
		msg := []byte{}
		for _, s := range []string{"", "__name__", "m", "help"} {
			msg = append(append(msg, 0x22, byte(len(s))), s...)
		}
		return append(append(msg, 0x2a, byte(len(series))), series...)
	}
	counter, help, broken := "\x08\x01", "\x18\x03", "\x18"
	for _, metadata := range [][]string{{counter, help}, {help, counter}, {"", counter, "", help}, {broken, counter}, {counter, broken}} {
		msg := message(metadata...)
		require.Empty(t, differs(remotewrite.V2, msg), "%q", metadata)
		_, b, err := ours(remotewrite.NewGeneration(7), remotewrite.V2, msg)
		if strings.Join(metadata, "") == counter+help || strings.Join(metadata, "") == help+counter {
			require.NoError(t, err)
			require.Equal(t, []segment.Metadata{{Metric: "m", Type: "counter", Help: "help"}}, b.Metadata)
			continue
		}
		require.Error(t, err, "%q", metadata)
	}
}
