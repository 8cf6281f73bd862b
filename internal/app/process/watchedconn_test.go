package process

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recorded is a connection that records what is written.
type recorded struct {
	net.Conn
	text bytes.Buffer
}

func (r *recorded) Write(b []byte) (int, error) { return r.text.Write(b) }

func (*recorded) SetWriteDeadline(time.Time) error { return nil }

// TestHeadGoesWithTheBody: the first piece of an answer waits for the next one, and no other does.
func TestHeadGoesWithTheBody(t *testing.T) {
	conns, inner := NewConnections(nil, "http", "web.max-connections", 10, time.Minute), &recorded{}
	w := &watchedConn{Conn: inner, connections: conns}
	require.True(t, conns.admit(w))
	write := func(text, want string) {
		n, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Len(t, text, n)
		require.Equal(t, want, inner.text.String())
		inner.text.Reset()
	}
	const first = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na"
	for range 2 {
		w.fresh = true
		write(first, "")
		write("bc", first+"bc")
		write(first, first) // that is in a body
	}
	w.fresh = true
	write(first+"bc", first+"bc")
}

// TestAnswersOfAllSizes: answers of all sizes around that of net/http's buffer arrive as they are, one
// after the other on a connection, with and without a length, and to HEAD.
func TestAnswersOfAllSizes(t *testing.T) {

	text := bytes.Repeat([]byte("0123456789abcde\n"), 20<<10)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.FormValue("n"))
		if err != nil {
			panic(err)
		}
		if r.FormValue("length") != "" {
			w.Header().Set("Content-Length", strconv.Itoa(n))
		}
		_, _ = w.Write(text[:n/3])
		if r.FormValue("flush") != "" {
			_ = http.NewResponseController(w).Flush()
		}
		if r.FormValue("abort") != "" {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(text[n/3 : n])
	}))
	conns := NewConnections(srv.Listener, "http", "web.max-connections", 10, time.Minute)
	srv.Listener, srv.Config.ConnState = conns, conns.note
	srv.Start()
	t.Cleanup(srv.Close)
	sizes := []int{0, 1, 100, 12_000, 70_000, 200_000, len(text)}
	for n := 3800; n < 4200; n += 7 {
		sizes = append(sizes, n)
	}
	for n := 2*openingBytes - 250; n <= 2*openingBytes; n++ {
		sizes = append(sizes, n)
	}
	for _, parameters := range []string{"", "&length=1", "&flush=1", "&length=1&flush=1"} {
		for _, n := range sizes {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				req, err := http.NewRequestWithContext(t.Context(), method, fmt.Sprintf("%s/?n=%d%s", srv.URL, n, parameters), nil)
				require.NoError(t, err)
				resp, err := srv.Client().Do(req)
				require.NoError(t, err)
				got, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				want := text[:n]
				if method == http.MethodHead {
					want = nil
				}
				require.True(t, bytes.Equal(want, got), "%d bytes, %s %s", n, method, parameters)
			}
		}
	}
	resp, err := srv.Client().Get(srv.URL + "/?n=30000&length=1&abort=1")
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		_ = resp.Body.Close()
	}
	require.Error(t, err)
}

func TestGoesOn(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nA: b\r\n\r\n"
	for text, want := range map[string]bool{
		head + "a": true, head + "ab": true, head + "abc": false, head + "abcd": false,
		head: false, "": false, "\r\n\r\n": false, "a": false,
		"HTTP/1.1 200 OK\r\n\r\nContent-Length: 30\r\n": false,
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\na": false,
		"HTTP/1.1 200 OK\r\nContent-Length: 3":          false,
		"HTTP/1.1 100 Continue\r\n\r\n":                 false,
	} {
		require.Equal(t, want, goesOn([]byte(text)), "%q", text)
	}
}
