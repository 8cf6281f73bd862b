package rulefn

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
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"

	"github.com/promlake/promlake/internal/rulestate"
	"github.com/promlake/promlake/internal/tenant"
)

const (
	// tenantLabel names the tenant in notifications: Alertmanager would take equal alerts of two
	// tenants for one.
	tenantLabel = "tenant"
	// maxBatch is the number of alerts in one request, as upstream's default.
	maxBatch = 256
	// maxComplaint is how much of an answer an error repeats.
	maxComplaint = 512
)

// alertmanagers sends notifications by Alertmanager's API, version 2:
// https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml
type alertmanagers struct {
	urls   []*url.URL // a password in one is that of basic authentication
	client *http.Client
	// external are the labels that notifications get unless their alerts have them.
	external labels.Labels
	// relabeling changes and drops notifications that have these labels.
	relabeling []*relabel.Config
}

// Sender returns a Sender to the Alertmanagers of the settings; nil if there are none.
func (s Settings) Sender() (Sender, error) {
	urls, err := s.alertmanagers()
	if err != nil || len(urls) == 0 {
		return nil, err
	}
	external, err := s.externalLabels()
	if err != nil {
		return nil, err
	}
	relabeling, err := s.relabeling()
	if err != nil {
		return nil, err
	}
	return &alertmanagers{urls, &http.Client{Timeout: s.NotifyTimeout}, external, relabeling}, nil
}

// Send implements Sender. Every Alertmanager gets all notifications, also if another one fails.
func (a *alertmanagers) Send(ctx context.Context, id string, all []rulestate.Notification) (sent int, err error) {
	var bodies [][]byte
	alerts := a.postable(id, all)
	for batch := range slices.Chunk(alerts, maxBatch) {
		body, err := json.Marshal(batch)
		if err != nil {
			return 0, fmt.Errorf("encode notifications: %w", err)
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
	return len(alerts), errors.Join(errs...)
}

// postAll posts to an Alertmanager until it fails: one that does not answer takes the time of one
// request.
func (a *alertmanagers) postAll(ctx context.Context, u *url.URL, bodies [][]byte) error {
	for _, body := range bodies {
		if err := a.post(ctx, u, body); err != nil {
			return err
		}
	}
	return nil
}

func (a *alertmanagers) post(ctx context.Context, u *url.URL, body []byte) error {
	to := u.JoinPath("api", "v2", "alerts")
	to.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if password, ok := u.User.Password(); ok {
		req.SetBasicAuth(u.User.Username(), password)
	}
	res, err := a.client.Do(req)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxComplaint))
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return err
	}
	if res.StatusCode/100 != 2 {
		return fmt.Errorf("%s: %q", res.Status, text)
	}
	return nil
}

// postable returns notifications as the API has them, without those that relabeling drops. A label
// of a rule cannot name another tenant. The order of the steps is that of upstream's notifier.
func (a *alertmanagers) postable(id string, all []rulestate.Notification) models.PostableAlerts {
	out := make(models.PostableAlerts, 0, len(all))
	for _, n := range all {
		ls := labels.NewBuilder(n.Labels)
		a.external.Range(func(l labels.Label) {
			if !n.Labels.Has(l.Name) {
				ls.Set(l.Name, l.Value)
			}
		})
		if id != tenant.Default {
			ls.Set(tenantLabel, id)
			n.GeneratorURL += "&" + tenantLabel + "=" + url.QueryEscape(id)
		}
		if !relabel.ProcessBuilder(ls, a.relabeling...) {
			continue
		}
		out = append(out, &models.PostableAlert{
			Annotations: n.Annotations.Map(), StartsAt: date(n.StartsAt), EndsAt: date(n.EndsAt),
			Alert: models.Alert{GeneratorURL: strfmt.URI(n.GeneratorURL), Labels: ls.Labels().Map()},
		})
	}
	return out
}

func date(t time.Time) strfmt.DateTime { return strfmt.DateTime(t) }
