package process

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRefusedBodiesAreAnswered: a client that sends its whole body before it reads gets the answer
// of a handler that reads none of it, or a part. One that never ends is disconnected.
func TestRefusedBodiesAreAnswered(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	conns := NewConnections(ln, "http", "web.max-connections", 10, time.Minute)
	srv := newServer(DefaultSettings(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/part" {
			_, _ = io.ReadAll(http.MaxBytesReader(w, r.Body, 1000))
		}
		http.Error(w, "too large", http.StatusRequestEntityTooLarge)
	}), conns, slog.New(slog.DiscardHandler))
	go func() { _ = srv.Serve(conns) }()
	t.Cleanup(func() { _ = srv.Close() })
	dial := func() net.Conn {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(2*time.Minute)))
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	piece := strings.Repeat("x", 1<<20)
	for _, path := range []string{"/none", "/part"} {
		for _, head := range []string{"Content-Length: 33554432\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2000000\r\n"} {
			conn := dial()
			_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\n%s", path, head)
			require.NoError(t, err)
			for range 32 {
				_, err := io.WriteString(conn, piece)
				require.NoError(t, err, "reset while it sends")
			}
			if strings.Contains(head, "chunked") {
				_, err := io.WriteString(conn, "\r\n0\r\n\r\n")
				require.NoError(t, err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, "413 too large\n", fmt.Sprint(resp.StatusCode, " ", string(text)))
		}
	}
	conn, sent := dial(), 0
	_, err = io.WriteString(conn, "POST /none HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n")
	for ; err == nil; sent++ {
		_, err = io.WriteString(conn, piece)
	}
	require.NotErrorIs(t, err, io.ErrShortWrite)
	require.Greater(t, sent, drainBytes>>20)
	require.Less(t, sent, 2*drainBytes>>20)
}
