package importapp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// refusedError reports an answer that stays the same when the request is repeated.
type refusedError struct{ status, body string }

// Error implements error.
func (e *refusedError) Error() string {
	return fmt.Sprintf("the server answers %s: %s", e.status, e.body)
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok
}

// refusing turns such answers into errors.
type refusing struct{ next http.RoundTripper }

// shown bounds the bytes of an answer that an error shows.
const shown = 512

// RoundTrip implements http.RoundTripper.
func (t refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode/100 != 4 || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusRequestTimeout {
		return resp, err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, shown)) // the status says enough without it
	return nil, &refusedError{resp.Status, strings.TrimSpace(strings.ToValidUTF8(string(body), "?"))}
}
