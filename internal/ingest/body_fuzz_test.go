package ingest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/golang/snappy"
	"github.com/stretchr/testify/require"
)

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
