// Package peer sends requests to the servers under test, and waits until they have finished their
// background work.
package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	sendTimeout = 2 * time.Minute
	maxMessage  = 300 // bytes of an answer that an error quotes
)

// Write sends a remote_write 1.0 request, packed by snappy, to url.
func Write(ctx context.Context, url string, packed []byte) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Encoding", "snappy")
	req.Header.Set("Content-Type", "application/x-protobuf")
	req.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
	_, err = do(req)
	return err
}

// Get returns the uncompressed body of a 2xx answer to a GET of url.
func Get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept-Encoding", "identity")
	return do(req)
}

// do sends a request and returns the body of a 2xx answer.
func do(req *http.Request) ([]byte, error) {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() // read to its end below
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, strings.TrimSpace(string(answer[:min(len(answer), maxMessage)])))
	}
	return answer, nil
}
