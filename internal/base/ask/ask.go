// Package ask sends requests to the HTTP API of a server, or to a handler of this process.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Seconds writes ms as the API takes times and durations.
func Seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

// Post sends a form and returns the answer of success, whose body the caller closes.
func Post(ctx context.Context, client *http.Client, address string, form url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("send request: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	const most = 64 << 10
	b, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return nil, fmt.Errorf("read answer of status %d: %w", resp.StatusCode, err)
	}
	var e struct {
		Kind  string `json:"errorType"`
		Error string `json:"error"`
	}
	if json.Unmarshal(b, &e) != nil || e.Error == "" {
		return nil, fmt.Errorf("the server answers %s: %s", resp.Status, strings.TrimSpace(string(b)))
	}
	return nil, fmt.Errorf("%s: %s", e.Kind, e.Error)
}

// PostJSON is Post, and decodes the JSON that is answered: at most so many bytes.
func PostJSON(ctx context.Context, client *http.Client, address string, form url.Values, most int64, into any) error {
	resp, err := Post(ctx, client, address, form)
	if err != nil {
		return err
	}
	if err := errors.Join(json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(into), resp.Body.Close()); err != nil {
		return fmt.Errorf("read answer of status %d: %w", resp.StatusCode, err)
	}
	return nil
}
