package process

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestIdleLongest: a connection beyond the limit takes the place of the one that has been idle
// longest, and of none that is not idle.
func TestIdleLongest(t *testing.T) {
	c := newConnections(3, time.Minute)
	var ends, clients []net.Conn
	admit := func() bool {
		client, end := net.Pipe()
		t.Cleanup(func() { _ = client.Close() })
		clients, ends = append(clients, client), append(ends, end)
		return c.admit(end)
	}
	closed := func(i int) {
		t.Helper()
		_, err := clients[i].Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
	}
	for range 3 {
		require.True(t, admit())
	}
	require.False(t, admit(), "none is idle")
	for _, i := range []int{1, 0, 2} {
		c.note(ends[i], http.StateIdle)
	}
	require.True(t, admit())
	closed(1)
	c.note(ends[0], http.StateActive)
	require.True(t, admit())
	closed(2)
	require.False(t, admit(), "none is idle")
	c.note(ends[0], http.StateClosed)
	require.True(t, admit())
}
