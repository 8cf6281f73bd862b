package ingest

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/segment"
	"github.com/promlake/promlake/internal/series"
)

// samplesOf are the samples that a message holds, by kind and label set, in their order.
type samplesOf map[string][]string

const floatsOf, histsOf = "floats ", "hists "

func testLimits() (*Limits, horizon) {
	l := DefaultSettings().Limits
	return &l, l.horizon(time.UnixMilli(someTime))
}

// ours decodes a message with the decoder under test.
func ours(g *generation, version protocol, msg []byte) (samplesOf, *batch, error) {
	limits, hor := testLimits()
	d := &decoder{limits: limits}
	d.begin(msg, DefaultSettings().MaxInflightBytes, DefaultSettings().MaxInflightBytes, nil)
	b, err := d.decode(version, msg, g, hor)
	if err != nil {
		return nil, nil, err
	}
	out := samplesOf{}
	v := g.table.View()
	for i, f := range b.floats {
		st := int64(0)
		if b.starts != nil {
			st = b.starts[i]
		}
		out.add(floatsOf+lsetOf(&v, f.ref), floatText(segment.Float{T: f.t, V: f.v, ST: st}))
	}
	for _, h := range b.hists {
		out.add(histsOf+lsetOf(&v, h.ref), hist(h.Hist))
	}
	return out, b, nil
}

func (s samplesOf) add(of, sample string) { s[of] = append(s[of], sample) }

func lsetOf(v *series.View, r series.Ref) string {
	b := labels.NewBuilder(labels.EmptyLabels())
	b.Set("__name__", v.Metrics[v.Metric(r)])
	for _, p := range v.Pairs(r) {
		b.Set(v.Names[p.Name], v.Values[p.Name][p.Value])
	}
	return b.Labels().String()
}

func hist(h segment.Hist) string {
	b, err := segment.EncodeHist(h)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %x", h.T, b)
}

// theirs decodes a message with upstream's generated code and keeps what breaks no rule.
func theirs(version protocol, msg []byte) (samplesOf, error) {
	out := samplesOf{}
	if version == protocolV1 {
		var req prompb.WriteRequest
		if err := req.Unmarshal(msg); err != nil {
			return nil, err
		}
		for _, ts := range req.Timeseries {
			var lset []series.Label
			for _, l := range ts.Labels {
				lset = append(lset, series.Label{Name: l.Name, Value: l.Value})
			}
			name, ok := accepted(lset)
			if !ok {
				continue
			}
			for _, s := range ts.Samples {
				out.float(name, segment.Float{T: s.Timestamp, V: s.Value})
			}
			for _, h := range ts.Histograms {
				if h.IsFloatHistogram() {
					out.hist(name, segment.Hist{T: h.Timestamp, FH: h.ToFloatHistogram()})
				} else {
					out.hist(name, segment.Hist{T: h.Timestamp, H: h.ToIntHistogram()})
				}
			}
		}
		return out, nil
	}
	var req writev2.Request
	if err := req.Unmarshal(msg); err != nil {
		return nil, err
	}
	for _, ts := range req.Timeseries {
		name, ok := resolved(req.Symbols, ts.LabelsRefs)
		if !ok {
			continue
		}
		for _, s := range ts.Samples {
			out.float(name, segment.Float{T: s.Timestamp, V: s.Value, ST: s.StartTimestamp})
		}
		for _, h := range ts.Histograms {
			if h.IsFloatHistogram() {
				out.hist(name, segment.Hist{T: h.Timestamp, ST: h.StartTimestamp, FH: h.ToFloatHistogram()})
			} else {
				out.hist(name, segment.Hist{T: h.Timestamp, ST: h.StartTimestamp, H: h.ToIntHistogram()})
			}
		}
	}
	return out, nil
}

func resolved(symbols []string, refs []uint32) (string, bool) {
	if len(refs)%2 != 0 {
		return "", false
	}
	var lset []series.Label
	for i := 0; i < len(refs); i += 2 {
		if int(refs[i]) >= len(symbols) || int(refs[i+1]) >= len(symbols) {
			return "", false
		}
		lset = append(lset, series.Label{Name: symbols[refs[i]], Value: symbols[refs[i+1]]})
	}
	return accepted(lset)
}

func accepted(lset []series.Label) (string, bool) {
	limits, _ := testLimits()
	kept, err := limits.checkLabels(lset)
	if err != nil {
		return "", false
	}
	b := labels.NewBuilder(labels.EmptyLabels())
	for _, l := range kept {
		b.Set(l.Name, l.Value)
	}
	return b.Labels().String(), true
}

func (s samplesOf) float(lset string, f segment.Float) {
	_, hor := testLimits()
	if hor.check(f.T) == nil && hor.checkStart(f.ST) == nil {
		s.add(floatsOf+lset, floatText(f))
	}
}

func (s samplesOf) hist(lset string, h segment.Hist) {
	_, hor := testLimits()
	if hor.check(h.T) != nil || hor.checkStart(h.ST) != nil {
		return
	}
	var schema int32
	var valid interface {
		Validate() error
		ReduceResolution(int32) error
	} = h.H
	if h.FH != nil {
		valid, schema = h.FH, h.FH.Schema
	} else {
		schema = h.H.Schema
	}
	if schema > 8 && schema <= 52 && valid.ReduceResolution(8) != nil {
		return
	}
	if valid.Validate() == nil {
		s.add(histsOf+lset, hist(h))
	}
}

// differs compares the decoders on one message, twice: with unknown series and with known ones. It returns what is wrong, or "".
//
// Differences that are meant: a message is refused here and not there if it uses protobuf's groups, a tag above 32 bits, a varint above 64 bits, a
// first symbol that is not empty, packed references that end in the middle of one (upstream reads on behind them), fields that are too dense, or
// in a 1.0 histogram the field that only 2.0 has; and there and not here if it is broken in the metadata of a series that is refused anyway.
func differs(version protocol, msg []byte) string {
	g := newGeneration(7, func(reason, int) {})
	for range 2 {
		got, b, err := ours(g, version, msg)
		want, wantErr := theirs(version, msg)
		var dense *errDense
		var refused *Rejection
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
			if version == protocolV2 && b.rejected > 0 {
				return ""
			}
			return fmt.Sprintf("refused there alone: %v", wantErr)
		case err != nil:
			return ""
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Sprintf("here:  %v\nthere: %v", got, want)
		}
		b.release()
	}
	return ""
}

// randomItems makes a request: mostly valid, with the odd offender.
func randomItems(rng *rand.Rand) []item {
	names := []string{"A", "__name__", "a", "b", "instance", "job", "ü"}
	values := []string{"", "0", "1", "node", "çödé", long(50), "\xff"}
	var out []item
	for range rng.IntN(12) {
		var it item
		for _, n := range names {
			if n == "__name__" || rng.IntN(3) == 0 {
				it.lset = append(it.lset, n, values[min(rng.IntN(40), rng.IntN(len(values)))])
			}
		}
		it.lset = append(it.lset, "zz", fmt.Sprint(rng.IntN(4)))
		for i := range it.lset {
			if i%2 == 1 && it.lset[i-1] == "__name__" {
				it.lset[i] = fmt.Sprintf("m%d", rng.IntN(5))
			}
		}
		for range rng.IntN(4) {
			f := segment.Float{T: someTime - rng.Int64N(10_000_000), V: math.Float64frombits(rng.Uint64())}
			if rng.IntN(4) == 0 {
				f.ST = f.T - rng.Int64N(1000)
			}
			it.floats = append(it.floats, f)
		}
		for range rng.IntN(3) {
			h := segment.Hist{T: someTime - rng.Int64N(10_000_000), ST: rng.Int64N(2) * someTime}
			switch n := rng.Int64N(9); rng.IntN(5) {
			case 0:
				h.H = tsdbutil.GenerateTestHistogram(n)
			case 1:
				h.FH = tsdbutil.GenerateTestFloatHistogram(n)
			case 2:
				h.H = tsdbutil.GenerateTestCustomBucketsHistogram(n)
			case 3:
				h.FH = tsdbutil.GenerateTestCustomBucketsFloatHistogram(n)
			case 4: // a resolution that is lowered
				h.H = &histogram.Histogram{Schema: 9 + int32(n), Count: 3, PositiveSpans: []histogram.Span{{Offset: int32(n), Length: 2}}, PositiveBuckets: []int64{1, 1}}
			}
			it.hists = append(it.hists, h)
		}
		if rng.IntN(3) == 0 {
			it.exemplars = append(it.exemplars, exemplar.Exemplar{Ts: someTime - 5, Value: 1, Labels: labels.FromStrings("trace_id", fmt.Sprint(rng.Uint64()))})
		}
		if rng.IntN(3) == 0 {
			it.meta = segment.Metadata{Metric: "m1", Type: "counter", Help: "help"}
		}
		out = append(out, it)
	}
	return out
}

// message encodes items.
func message(t testing.TB, version protocol, items []item) []byte {
	if version == protocolV2 {
		return mustMarshal(t, encodeV2(items))
	}
	return mustMarshal(t, encodeV1(items))
}

// TestDecodersAgree compares the decoder with upstream's on random messages, as they are and with bits flipped.
func TestDecodersAgree(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		refused := 0
		for seed := range uint64(250) {
			rng := rand.New(rand.NewPCG(seed, 5))
			msg := message(t, version, randomItems(rng))
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
				if _, err := theirs(version, bad); err != nil {
					refused++
				}
			}
		}
		require.Greater(t, refused, 1000, "most flips should be noticed")
	})
}

// TestRandomRequests sends random requests through the handler, and finds in the store what upstream's decoder reads.
func TestRandomRequests(t *testing.T) {
	for _, mode := range modes {
		t.Run("mode="+string(mode), func(t *testing.T) { testRandomRequests(t, mode) })
	}
}

func testRandomRequests(t *testing.T, mode Mode) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 6))
		l := calmIn(t, mode)
		want := map[string]map[string]string{} // the last sample of each time, by kind and series
		for i := range 15 {
			version := protocols[rng.IntN(2)]
			items := randomItems(rng)
			w := l.send(version, items)
			require.Less(t, w.Code, 500)
			l.tick()
			samples, err := theirs(version, message(t, version, items))
			require.NoError(t, err, i)
			for of, ss := range samples {
				put(want, of)
				for _, s := range ss {
					want[of][strings.Fields(s)[0]] = s
				}
			}
		}
		got := map[string]map[string]string{}
		for name, c := range l.read(anonymous) {
			for of, ss := range map[string][]string{floatsOf + name: c.Floats, histsOf + name: c.Hists} {
				for _, s := range ss {
					put(got, of)
					got[of][strings.Fields(s)[0]] = s
				}
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}
