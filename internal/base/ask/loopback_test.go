package ask_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/ask"
)

// TestTransport: the reader sees the beginning of an answer that has no end yet.
func TestTransport(t *testing.T) {
	more := make(chan struct{})
	client := &http.Client{Transport: ask.Loopback(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		w.Header().Set("X-Method", r.Method)
		w.WriteHeader(http.StatusAccepted)
		w.Header().Set("X-Late", "ignored")
		_, _ = io.WriteString(w, "got "+string(body))
		<-more
		_, _ = io.WriteString(w, " and more")
	}))}
	resp, err := client.Post("http://anywhere/x", "text/plain", strings.NewReader("this"))
	require.NoError(t, err)
	require.Equal(t, http.StatusAccepted, resp.StatusCode)
	require.Equal(t, "POST", resp.Header.Get("X-Method"))
	require.Empty(t, resp.Header.Get("X-Late"))
	begin := make([]byte, len("got this"))
	_, err = io.ReadFull(resp.Body, begin)
	require.NoError(t, err)
	require.Equal(t, "got this", string(begin))
	close(more)
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, " and more", string(rest))
	require.NoError(t, resp.Body.Close())
}

// TestClosed: a handler whose answer nobody reads has ended when the body is closed.
func TestClosed(t *testing.T) {
	ended := false
	client := &http.Client{Transport: ask.Loopback(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for {
			if _, err := io.WriteString(w, "x"); err != nil {
				break
			}
		}
		<-r.Context().Done()
		ended = true
	}))}
	resp, err := client.Get("http://anywhere/x")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.True(t, ended)
}

// TestBrokenOff: before its beginning, an answer that is broken off is an error of the
// request, afterwards one of the body. Without a word, it is an empty success.
func TestBrokenOff(t *testing.T) {
	client := &http.Client{Transport: ask.Loopback(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			return
		}
		if r.URL.Path == "/half" {
			_, _ = io.WriteString(w, "half")
		}
		if r.URL.Path == "/defect" {
			panic("a defect")
		}
		panic(http.ErrAbortHandler)
	}))}
	for _, path := range []string{"none", "defect"} {
		_, err := client.Get("http://anywhere/" + path)
		require.ErrorContains(t, err, "the answer was broken off")
	}
	resp, err := client.Get("http://anywhere/half")
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.ErrorContains(t, err, "the answer was broken off")
	require.NoError(t, resp.Body.Close())
	resp, err = client.Get("http://anywhere/silent")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, resp.Body.Close())
}

// TestCancelled: the caller's context ends the handler, which is over when the call returns.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := false
	client := &http.Client{Transport: ask.Loopback(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
		ended = true
	}))}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://anywhere/x", nil)
	require.NoError(t, err)
	_, err = client.Do(req)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, ended)
}
