package ingest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/ingest/message"
)

// wide are series with all that the protocols can carry, in labels that do not compress well.
func wide(n int) []item {
	rng := rand.New(rand.NewPCG(uint64(n), 1))
	var out []item
	for i := range n {
		for _, it := range everything() {
			it.Lset = append(append([]string{}, it.Lset...), "ÿ", fmt.Sprintf("%d-%x", i, rng.Uint64()))
			it.Meta = segment.Metadata{}
			if i%3 == 0 {
				it.Meta = segment.Metadata{Metric: it.Lset[1], Type: "gauge", Help: fmt.Sprintf("help %x", rng.Uint64())}
			}
			it.Exemplars = append(append([]exemplar.Exemplar{}, it.Exemplars...), exemplar.Exemplar{Ts: someTime, HasTs: true, Labels: labels.FromStrings("trace_id", fmt.Sprintf("%x", rng.Uint64()))})
			out = append(out, it)
		}
	}
	return out
}

// TestSplit splits requests into messages of many sizes: each message fits, and together they hold
// the content of the request.
func TestSplit(t *testing.T) {
	items := wide(12)
	inBoth(t, func(t *testing.T, version protocol) {
		most := 0
		direct := calmIn(t, Direct)
		direct.ok(version, items)
		for _, limit := range []int{1 << 20, 5000, 2500, 1500, 1000} {
			l := held(t)
			l.stage.maxMessage = limit
			w := l.ok(version, items)
			if version == protocolV2 {
				require.Equal(t, []string{fmt.Sprint(8 * 12), fmt.Sprint(8 * 12), fmt.Sprint(8 * 12)}, writtenHeaders(w.Header()))
			}
			ms := l.queue.Messages()
			require.GreaterOrEqual(t, len(ms), most)
			most = len(ms)
			sum := remotewrite.Tally{}
			for _, m := range ms {
				require.LessOrEqual(t, len(m.Body), limit)
				e, err := message.Parse(m.Body)
				require.NoError(t, err)
				sum = sum.Plus(e.Holds)
			}
			require.Equal(t, remotewrite.Tally{Floats: 96, Hists: 96, Exemplars: 96}, sum)
			require.Empty(t, l.consume())
			require.Equal(t, want(t, version, items), l.read(anonymous))
			require.Equal(t, direct.metadata(), l.metadata())
		}
		require.Greater(t, most, 10)
	})
}

// TestSplitKeepsRefusals splits requests with offenders in them: the valid rest is stored.
func TestSplitKeepsRefusals(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		for _, o := range offenders() {
			l := held(t)
			l.stage.maxMessage = 1000
			items := append(wide(2), o.item)
			w := l.send(version, append(items, wide(4)...))
			if w.Code == http.StatusRequestEntityTooLarge {
				require.Contains(t, w.Body.String(), "one sample with its labels takes")
				continue
			}
			requireRejected(t, o, w.Code, w.Body.String())
			require.Greater(t, len(l.queue.Messages()), 5)
			require.Empty(t, l.consume())
			valid := append(wide(2), wide(4)...)
			if o.kept.Lset != nil {
				valid = append(valid, o.kept)
			}
			got := l.read(anonymous)
			require.Len(t, got, len(valid), o.name)
			require.InDelta(t, o.samples, l.discarded(o.reason), 0, o.name)
		}
	})
}

// TestOneSeriesInParts cuts a series that does not fit a message.
func TestOneSeriesInParts(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		l := held(t)
		l.stage.maxMessage = 1500
		rng := rand.New(rand.NewPCG(1, 1))
		one := gauge("bulky")
		for i := range int64(500) {
			one.Floats = append(one.Floats, at(someTime+i, rng.Float64()))
		}
		items := append(wide(1), one)
		l.ok(version, items)
		require.Greater(t, len(l.queue.Messages()), 5)
		require.Empty(t, l.consume())
		require.Equal(t, want(t, version, items), l.read(anonymous))
	})
}

// TestSplitLimits names the limit that a request is over, and leaves nothing on the queue.
func TestSplitLimits(t *testing.T) {
	inBoth(t, func(t *testing.T, version protocol) {
		l := held(t)
		l.stage.maxMessage = 1500
		rng := rand.New(rand.NewPCG(1, 1))
		one := gauge("bulky", at(someTime, 1))
		one.Lset = append(one.Lset, "ÿ", randomText(rng, 1800))
		w := l.send(version, append(wide(3), one))
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		require.Contains(t, w.Body.String(), "one sample with its labels takes")
		require.Contains(t, w.Body.String(), "the limit of a message is 1500 (max-message-bytes of the queue)")
		l.stage.set.MaxMessages = 3
		w = l.send(version, wide(12))
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		require.Contains(t, w.Body.String(), "the request takes more than 3 messages on the queue (max-messages): send fewer samples in a request")
		require.Empty(t, l.queue.Messages())
		require.Zero(t, l.inflight())
	})
}

// randomText is text that does not compress.
func randomText(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(rng.IntN(26))
	}
	return string(b)
}
