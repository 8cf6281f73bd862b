package answers

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// TestZipped: compressors are used again, also by answers at the same time, and never after a
// panic.
func TestZipped(t *testing.T) {
	text := func(n int) string { return strings.Repeat("answer "+strconv.Itoa(n)+" ", n) }
	srv := httptest.NewServer(Zipped(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.Query().Get("n"))
		body := text(n)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = io.WriteString(w, body)
		if err != nil || n%7 == 0 {
			panic(http.ErrAbortHandler)
		}
	})))
	defer srv.Close()
	var g errgroup.Group
	for worker := range 8 {
		g.Go(func() error {
			for i := range 40 {
				n := (worker*997 + i*61) % 5000
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"?n="+strconv.Itoa(n), nil)
				if err != nil {
					return err
				}
				req.Header.Set(acceptEncoding, "br, gzip")
				resp, err := http.DefaultClient.Do(req)
				if n%7 == 0 {
					if err == nil {
						_ = resp.Body.Close()
					}
					continue
				}
				if err != nil {
					return err
				}
				zip, err := gzip.NewReader(resp.Body)
				if err != nil {
					return err
				}
				body, err := io.ReadAll(zip)
				if err != nil {
					return err
				}
				if err := resp.Body.Close(); err != nil {
					return err
				}
				if string(body) != text(n) {
					return fmt.Errorf("another answer than that of %d", n)
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

func TestAsksForGzip(t *testing.T) {
	for accepted, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip": true, "gzip, deflate": true, "deflate, gzip": false, "identity": false, "gzip;q=0": false,
	} {
		require.Equal(t, want, asksForGzip(accepted), accepted)
	}
}
