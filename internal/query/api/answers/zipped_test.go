package answers

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/util/httputil"
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
				n := (worker*997 + i*61) % 10_000 // up to 120 kB
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
				body, err := unzipped(resp.Header, resp.Body)
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

// unzipped decompresses an answer as its header says.
func unzipped(h http.Header, body io.Reader) ([]byte, error) {
	var err error
	switch h.Get(contentEncoding) {
	case "gzip":
		body, err = gzip.NewReader(body)
	case "deflate":
		body, err = zlib.NewReader(body)
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body)
}

// TestZippedSizes: a small answer is sent as it is, and a large one has about the size of
// upstream's, whether it is written at once or not.
func TestZippedSizes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var text []byte
	for len(text) < 3*zippedFrom {
		text = strconv.AppendInt(append(text, "[1700000000,\""...), r.Int64N(1_000_000), 10)
		text = append(text, "\"],"...)
	}
	serve := func(h http.Handler, n int) *httptest.ResponseRecorder {
		answer, req := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
		req.Header.Set(acceptEncoding, "gzip")
		h.ServeHTTP(answer, req)
		require.Equal(t, http.StatusTeapot, answer.Code)
		body, err := unzipped(answer.Header(), bytes.NewReader(answer.Body.Bytes()))
		require.NoError(t, err)
		require.True(t, bytes.Equal(text[:n], body), "%d bytes", n)
		return answer
	}
	for _, parts := range [][]int{{}, {0}, {1}, {zippedFrom - 1}, {zippedFrom - 1, 1}, {100, zippedFrom}, {zippedFrom}, {2 * zippedFrom, 100}} {
		n := 0
		for _, k := range parts {
			n += k
		}
		next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(n))
			w.WriteHeader(http.StatusTeapot)
			at := 0
			for _, k := range parts {
				_, err := w.Write(text[at : at+k])
				require.NoError(t, err)
				at += k
			}
		})
		got := serve(Zipped(next), n)
		if n < zippedFrom {
			require.Empty(t, got.Header().Get(contentEncoding), parts)
			require.Equal(t, strconv.Itoa(n), got.Header().Get("Content-Length"), parts)
			continue
		}
		require.Equal(t, "gzip", got.Header().Get(contentEncoding), parts)
		require.Empty(t, got.Header().Get("Content-Length"), parts)
		require.InEpsilon(t, serve(httputil.CompressionHandler{Handler: next}, n).Body.Len(), got.Body.Len(), 0.2, parts)
	}
}

func TestAsksForGzip(t *testing.T) {
	for accepted, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip": true, "gzip, deflate": true, "deflate, gzip": false, "identity": false, "gzip;q=0": false,
	} {
		require.Equal(t, want, asksForGzip(accepted), accepted)
	}
}
