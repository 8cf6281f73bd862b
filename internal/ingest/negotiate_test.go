package ingest

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
)

// TestNegotiation shows which pairs of content type and encoding are taken for which protocol
// version.
func TestNegotiation(t *testing.T) {
	const v1, v2, none = protocolV1, protocolV2, protocol(0)
	for _, tc := range []struct {
		contentType, encoding string
		want                  protocol
	}{
		{"application/x-protobuf", "snappy", v1},
		{"application/x-protobuf;proto=prometheus.WriteRequest", "snappy", v1},
		{"application/x-protobuf; proto=prometheus.WriteRequest", "Snappy", v1},
		{"APPLICATION/X-PROTOBUF", "snappy", v1},
		{`application/x-protobuf;proto="prometheus.WriteRequest"; charset=utf-8`, "snappy", v1},
		{"application/x-protobuf; charset=latin-1", "snappy", v1},
		{"application/x-protobuf;proto=io.prometheus.write.v2.Request", "snappy", v2},
		{"application/x-protobuf; charset=utf-8; proto=io.prometheus.write.v2.Request", "snappy", v2},
		{"application/x-protobuf;proto=io.prometheus.write.v2.Request", "", v2},
		{"", "snappy", v1},
		{"", "", v1},
		{"application/x-protobuf;proto=io.prometheus.write.v3.Request", "snappy", none},
		{"application/x-protobuf;proto=prometheus.writerequest", "snappy", none},
		{"application/x-protobuf;proto=a;proto=b", "snappy", none},
		{"application/x-protobuf;proto", "snappy", none},
		{"application/x-protobuf,application/json", "snappy", none},
		{"application/json", "snappy", none},
		{"text/plain", "snappy", none},
		{";", "snappy", none},
		{"application/x-protobuf", "gzip", none},
		{"application/x-protobuf", "zstd", none},
		{"application/x-protobuf", "identity", none},
		{"application/x-protobuf", "snappy, snappy", none},
		{"application/x-protobuf;proto=io.prometheus.write.v2.Request", "gzip", none},
	} {
		t.Run(tc.contentType+" as "+tc.encoding, func(t *testing.T) {
			l := calm(t)
			version := max(tc.want, protocolV1)
			w := l.send(version, []item{gauge("m", at(someTime, 1))}, "Content-Type", tc.contentType, "Content-Encoding", tc.encoding)
			if tc.want == none {
				require.Equal(t, http.StatusUnsupportedMediaType, w.Code)
				require.Contains(t, w.Body.String(), "not supported, only")
				require.Empty(t, l.store.Keys())
				return
			}
			require.Equal(t, http.StatusNoContent, w.Code, w.Body.String())
			require.Equal(t, tc.want == v2, w.Header().Get(samplesWritten) == "1")
			require.Equal(t, want(t, version, []item{gauge("m", at(someTime, 1))}), l.read(anonymous))
		})
	}
}

// TestProtocolsAreNotMixedUp sends each message with the content type of the other. The field
// numbers of the two messages are disjoint, so each is an empty request to the other's decoder, as
// with Prometheus.
func TestProtocolsAreNotMixedUp(t *testing.T) {
	l := calm(t)
	require.Equal(t, http.StatusNoContent, l.post(packed(t, encodeV2(everything()))).Code)
	w := l.post(packed(t, encodeV1(everything())), "Content-Type", contentV2)
	require.Equal(t, http.StatusNoContent, w.Code, w.Body.String())
	require.Equal(t, []string{"0", "0", "0"}, writtenHeaders(w.Header()))
	require.Empty(t, l.store.Keys())
}

func TestOtherMethods(t *testing.T) {
	l := calm(t)
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete} {
		w := l.serve(httptest.NewRequest(m, "/api/v1/write", nil))
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, m)
		require.Equal(t, http.MethodPost, w.Header().Get("Allow"))
	}
}

// TestTwoTenants: a request that names its tenant twice is refused, because a proxy's header could
// not be distinguished from the client's.
func TestTwoTenants(t *testing.T) {
	l := calm(t)
	r := request(newReader(packed(t, encodeV1([]item{gauge("up", at(someTime, 1))}))), -1)
	r.Header.Add(tenant.Header, "mine")
	r.Header.Add(tenant.Header, "yours")
	w := l.serve(r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Contains(t, w.Body.String(), "2 X-Scope-OrgID headers")
	require.Empty(t, l.store.Keys())
}
