package ingest

import (
	"bytes"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/segment"
)

// fuzzItems are series of every kind.
func fuzzItems() []item {
	full := gauge("full", at(someTime, 1), at(someTime+1, math.NaN()))
	full.hists = []segment.Hist{{T: someTime, H: tsdbutil.GenerateTestHistogram(1)}, {T: someTime + 1, FH: tsdbutil.GenerateTestFloatHistogram(2)}}
	full.meta = segment.Metadata{Metric: "full", Type: "counter", Help: "help", Unit: "s"}
	return []item{full, gauge("a", at(someTime, 0)), gauge("b", at(0, -1)), {lset: []string{"b", "1", "a", "2"}, floats: []segment.Float{at(1, 1)}}}
}

// FuzzBody sends bodies as they come: the answer is an answer, and the stage goes on.
func FuzzBody(f *testing.F) {
	raw, err := encodeV1(fuzzItems()).Marshal()
	require.NoError(f, err)
	f.Add(snappy.Encode(nil, raw), true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x0f, 0}, false)
	f.Fuzz(func(t *testing.T, body []byte, length bool) {
		l := calmIn(t, modes[len(body)%len(modes)])
		r := httptest.NewRequest(http.MethodPost, "/api/v1/write", io.NopCloser(bytes.NewReader(body)))
		r.ContentLength = -1
		if length {
			r.ContentLength = int64(len(body))
		}
		code := l.serve(r).Code
		require.Contains(t, []int{204, 400, 413}, code)
		require.Equal(t, http.StatusNoContent, l.send(protocolV1, []item{gauge("up", at(someTime, 1))}).Code)
	})
}
