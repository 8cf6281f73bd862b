package demo

import (
	"fmt"
	"net/http"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/prompb"

	"github.com/promlake/promlake/internal/scrape"
)

// collect appends the target's current values to req, with the series `up`, as a scrape at ts (ms)
// would. With an error, up is 0, and the values that could be gathered are appended.
func collect(t scrape.Target, req *prompb.WriteRequest, ts int64, withMetadata bool) error {
	families, err := t.Gather()
	if appendErr := t.Append(req, families, ts); err == nil {
		err = appendErr
	}
	up := 1.0
	if err != nil {
		up, err = 0, fmt.Errorf("job %s: %w", t.Labels[model.JobLabel], err)
	}
	t.AppendSample(req, model.Metric{model.MetricNameLabel: "up"}, ts, up)
	if withMetadata {
		for _, f := range families {
			req.Metadata = append(req.Metadata, scrape.Metadata(f))
		}
	}
	return err
}

// bearer sends a token with every request, if there is one. It implements http.RoundTripper.
type bearer struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}
