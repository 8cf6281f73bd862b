package uploadapp_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
)

// slowly is a body that arrives byte by byte, and a clock that goes on by a step for each.
type slowly struct {
	left []byte
	step time.Duration
	at   time.Time
}

// Read implements io.Reader.
func (b *slowly) Read(p []byte) (int, error) {
	if len(b.left) == 0 {
		return 0, io.EOF
	}
	b.at = b.at.Add(b.step)
	p[0], b.left = b.left[0], b.left[1:]
	return 1, nil
}

// TestBodyRate: a body may take as long as it needs at the least rate, and not longer.
func TestBodyRate(t *testing.T) {
	b := small(t, "up")
	for what, raw := range map[string][]byte{"start": b.meta, files("index"): b.files["index"]} {
		for step, code := range map[time.Duration]int{time.Second / (8 << 10): http.StatusOK, 59 * time.Second: http.StatusRequestTimeout} {
			body := &slowly{raw, step, time.Now()}
			s := serve(t, newStore(&clock{}), func(o *options) { o.now = func() time.Time { return body.at } })
			if what != "start" {
				s.want(200, "", b.id, "start", b.meta)
			}
			r := httptest.NewRequest(http.MethodPost, "/api/v1/upload/block/"+b.id+"/"+what, body)
			r.Header.Set(tenant.Header, name)
			w := httptest.NewRecorder()
			s.mux.ServeHTTP(w, r)
			require.Equal(t, code, w.Code, "%s: a byte in %s: %s", what, step, w.Body)
			if code == http.StatusOK {
				continue
			}
			require.Contains(t, w.Body.String(), "arrives too slowly: the limit is 8192 bytes a second after 1m0s; try again")
			require.Equal(t, "close", w.Header().Get("Connection"))
			require.NoError(t, testutil.GatherAndCompare(s.reg, strings.NewReader(`# HELP promlake_block_upload_limited_requests_total Uploads of blocks that were refused by a limit.
# TYPE promlake_block_upload_limited_requests_total counter
promlake_block_upload_limited_requests_total{limit="body rate"} 1
`), "promlake_block_upload_limited_requests_total"))
		}
	}
}

// TestStalledBody sends the beginning of a file and no more.
func TestStalledBody(t *testing.T) {
	b := small(t, "up")
	store := newStore(&clock{})
	serve(t, store).want(200, "", b.id, "start", b.meta)
	s := serve(t, store, func(o *options) { o.grace = 50 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /api/v1/upload/block/%s/files?path=index HTTP/1.1\r\nHost: x\r\n%s: %s\r\nContent-Length: %d\r\n\r\nbeginning", b.id, tenant.Header, name, len(b.files["index"]))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusRequestTimeout, resp.StatusCode)
	require.True(t, resp.Close)
	require.Contains(t, string(text), "file index arrives too slowly")
}
