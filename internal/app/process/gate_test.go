package process

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGate(t *testing.T) {
	g := &gate{}
	check := func(healthy, ready, other int) {
		t.Helper()
		for path, want := range map[string]int{"/-/healthy": healthy, "/-/ready": ready, "/x": other} {
			w := httptest.NewRecorder()
			g.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			require.Equal(t, want, w.Code, path)
		}
	}
	check(200, 503, 503)
	g.open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), nil)
	check(200, 200, 418)
	g.drain()
	check(200, 503, 418)
}

func TestLocalURL(t *testing.T) {
	for want, a := range map[string]net.Addr{
		"http://127.0.0.1:9":  &net.TCPAddr{IP: net.IPv4zero, Port: 9},
		"http://127.0.0.1:10": &net.TCPAddr{IP: net.IPv6unspecified, Port: 10},
		"http://[::1]:11":     &net.TCPAddr{IP: net.IPv6loopback, Port: 11},
		"http://10.0.0.1:12":  &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 12},
	} {
		require.Equal(t, want, localURL(a, false))
	}
}

func TestPublicURL(t *testing.T) {
	require.Equal(t, "s3://b/p", publicURL("s3://b/p?secret_key=x"))
	require.Equal(t, "file://./data", publicURL("file://./data"))
}
