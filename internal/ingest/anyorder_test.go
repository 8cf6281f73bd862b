package ingest

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	remoteapi "github.com/prometheus/client_golang/exp/api/remote"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/segment"
)

// TestLabelsInAnyOrder sends label sets in many orders to the stage and to Prometheus' receiver:
// both store the same samples of the same series, and refuse names that are there twice.
func TestLabelsInAnyOrder(t *testing.T) {
	sets := [][]string{
		{"__name__", "m", "a", "1", "job", "x", "zone", "eu"},
		{"A", "1", "__name__", "m", "a", ""},
		{"__name__", "m", "a", "1", "b", "1"},
		{"__name__", "m", "a", "1", "a", "2", "b", "1"},
		{"__name__", "m", "a", "", "a", "2"},
		{"a", "1", "b", "2"},
	}
	const valid = 3 // of the sets
	inAll(t, func(t *testing.T, mode Mode, version protocol) {
		l := calmIn(t, mode)
		upstream := teststorage.NewAppendable()
		receiver := remote.NewWriteHandler(slog.New(slog.DiscardHandler), prometheus.NewRegistry(), upstream,
			remoteapi.MessageTypes{remoteapi.WriteV1MessageType, remoteapi.WriteV2MessageType}, false, false, false)
		rng := rand.New(rand.NewPCG(1, 2))
		for round := range int64(4) {
			var items []item
			for n := range int64(30) {
				pairs := slices.Collect(slices.Chunk(sets[rng.IntN(len(sets))], 2))
				rng.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
				items = append(items, item{Lset: slices.Concat(pairs...), Floats: []segment.Float{at(someTime+30*round+n, float64(n))}})
			}
			require.Equal(t, http.StatusBadRequest, l.send(version, items).Code)
			body, kind := packed(t, encodeV1(items)), "application/x-protobuf"
			if version == protocolV2 {
				body, kind = packed(t, encodeV2(items)), contentV2
			}
			r := httptest.NewRequest(http.MethodPost, "/api/v1/write", bytes.NewReader(body))
			r.Header.Set("Content-Type", kind)
			r.Header.Set("Content-Encoding", "snappy")
			receiver.ServeHTTP(httptest.NewRecorder(), r)
		}
		want := map[string]content{}
		for _, s := range upstream.ResultSamples() {
			name := labels.NewBuilder(s.L).Labels().String() // without empty values
			c := want[name]
			c.Floats = append(c.Floats, floatText(at(s.T, s.V)))
			want[name] = c
		}
		require.Len(t, want, valid)
		require.Equal(t, want, l.read(anonymous))
		require.Positive(t, l.discarded(remotewrite.ReasonDuplicate))
	})
}
