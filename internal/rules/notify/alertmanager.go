package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
)

const (
	// maxBatch is the number of alerts in one request, as upstream's default.
	maxBatch = 256
	// maxComplaint is how much of an answer an error repeats.
	maxComplaint = 512
)

// alertmanagers sends alerts by Alertmanager's API, version 2:
// https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
type alertmanagers struct {
	urls   []*url.URL // a password in one is that of basic authentication
	client *http.Client
}

// deliver implements receiver. Every Alertmanager gets all alerts, also if another one fails.
func (a *alertmanagers) deliver(ctx context.Context, all []alert) (Delivery, error) {
	var bodies [][]byte
	out := make(models.PostableAlerts, 0, len(all))
	for _, a := range all {
		out = append(out, &models.PostableAlert{
			Annotations: a.Annotations.Map(), StartsAt: strfmt.DateTime(a.StartsAt), EndsAt: strfmt.DateTime(a.EndsAt),
			Alert: models.Alert{GeneratorURL: strfmt.URI(a.GeneratorURL), Labels: a.Labels.Map()},
		})
	}
	for batch := range slices.Chunk(out, maxBatch) {
		body, err := json.Marshal(batch)
		if err != nil {
			return Delivery{}, fmt.Errorf("encode notifications: %w", err)
		}
		bodies = append(bodies, body)
	}
	errs := make([]error, len(a.urls))
	var wg sync.WaitGroup
	for i, u := range a.urls {
		wg.Go(func() {
			if err := a.postAll(ctx, u, bodies); err != nil {
				errs[i] = fmt.Errorf("notify Alertmanager %s: %w", u.Redacted(), err)
			}
		})
	}
	wg.Wait()
	return Delivery{}, errors.Join(errs...)
}

// postAll posts to an Alertmanager until it fails: one that does not answer takes the time of one
// request.
func (a *alertmanagers) postAll(ctx context.Context, u *url.URL, bodies [][]byte) error {
	for _, body := range bodies {
		if err := post(ctx, a.client, u.JoinPath("api", "v2", "alerts"), body); err != nil {
			return err
		}
	}
	return nil
}

// statusError is an answer other than 2xx.
type statusError struct {
	code   int
	status string
	text   string // begin of the body
}

// Error implements error.
func (e *statusError) Error() string { return fmt.Sprintf("%s: %q", e.status, e.text) }

// post posts JSON. A password in the URL is that of basic authentication.
func post(ctx context.Context, client *http.Client, to *url.URL, body []byte) error {
	bare := *to
	bare.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, bare.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if password, ok := to.User.Password(); ok {
		req.SetBasicAuth(to.User.Username(), password)
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxComplaint))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return &statusError{res.StatusCode, res.Status, string(text)}
	}
	return nil
}
