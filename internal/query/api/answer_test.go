package api_test

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswersShareNoMemory sends range queries at once, over connections: the memory of an answer
// is used again, but not before it is sent. An answer that is sent in one piece has its length.
func TestAnswersShareNoMemory(t *testing.T) {
	root := serve(t, newHandler(t, testSettings(), newBackend(t)))
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(query string) (string, string) {
		resp, err := client.Get(root + "/api/v1" + ranged(query).path)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body), resp.Header.Get("Content-Length")
	}
	var all sync.WaitGroup
	for _, query := range []string{"up", "requests_total", "rate(requests_total[5m])", "sum(up)", "scalar(up)", "nothing", "up +"} {
		want, _ := ask(query)
		for range 4 {
			all.Go(func() {
				for range 20 {
					if got, n := ask(query); want != got || n != strconv.Itoa(len(got)) {
						t.Errorf("%s: %s of %s bytes, want %s", query, got, n, want)
						return
					}
				}
			})
		}
	}
	all.Wait()
}
