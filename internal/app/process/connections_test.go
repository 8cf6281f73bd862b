package process

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhoGivesWay: a connection beyond the limit takes the place of the oldest one without a request,
// or else of the one that has been idle longest, and of none that is busy.
func TestWhoGivesWay(t *testing.T) {
	c := NewConnections(nil, "http", "web.max-connections", 3, time.Minute)
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
	for i := range 3 {
		require.True(t, admit())
		c.Note(ends[i], http.StateActive)
	}
	require.False(t, admit(), "all are busy")
	for _, i := range []int{1, 0, 2} {
		c.Note(ends[i], http.StateIdle)
	}
	require.True(t, admit()) // 4
	closed(1)
	require.True(t, admit()) // 5
	closed(4)
	require.True(t, admit()) // 6
	closed(5)
	c.Note(ends[6], http.StateActive)
	require.True(t, admit()) // 7
	closed(0)
	for _, i := range []int{2, 7} {
		c.Note(ends[i], http.StateActive)
	}
	require.False(t, admit(), "all are busy")
	c.Note(ends[2], http.StateClosed)
	require.True(t, admit())

	c.spare = 2
	c.Note(ends[9], http.StateActive)
	for range 3 {
		require.True(t, admit())
	}
	closed(10)
	c.Note(ends[11], http.StateActive)
	c.Note(ends[12], http.StateActive)
	require.False(t, admit(), "all are busy, and the spare ones")
}
