package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/access/auth"
)

// document is the JSON of Alertmanager's webhooks, version 4:
// https://prometheus.io/docs/alerting/latest/configuration/#webhook_config. It has one alert, as if
// Alertmanager grouped by all labels (group_by: ['...']).
type document struct {
	Receiver          string         `json:"receiver"`
	Status            string         `json:"status"`
	Alerts            []event        `json:"alerts"`
	GroupLabels       model.LabelSet `json:"groupLabels"`
	CommonLabels      model.LabelSet `json:"commonLabels"`
	CommonAnnotations model.LabelSet `json:"commonAnnotations"`
	ExternalURL       string         `json:"externalURL"`
	Version           string         `json:"version"`
	GroupKey          string         `json:"groupKey"`
	TruncatedAlerts   int            `json:"truncatedAlerts"`
}

// event is an alert in a document.
type event struct {
	Status       string         `json:"status"`
	Labels       model.LabelSet `json:"labels"`
	Annotations  model.LabelSet `json:"annotations"`
	StartsAt     time.Time      `json:"startsAt"`
	EndsAt       time.Time      `json:"endsAt"` // zero while the alert fires, as Alertmanager has it
	GeneratorURL string         `json:"generatorURL"`
	Fingerprint  string         `json:"fingerprint"` // of the labels, as Alertmanager computes it
}

const (
	firing   = "firing"
	resolved = "resolved"
)

// newDocument returns the document of an alert. An alert has ended if its end is not after now, as
// for Alertmanager.
func newDocument(a alert, external *url.URL, now time.Time) document {
	ls := labelSet(a.Labels)
	e := event{Status: firing, Labels: ls, Annotations: labelSet(a.Annotations), StartsAt: a.StartsAt, GeneratorURL: a.GeneratorURL, Fingerprint: ls.Fingerprint().String()}
	if !a.EndsAt.After(now) {
		e.Status, e.EndsAt = resolved, a.EndsAt
	}
	return document{
		Receiver: "promlake", Status: e.Status, Alerts: []event{e}, GroupLabels: ls, CommonLabels: ls, CommonAnnotations: e.Annotations,
		ExternalURL: external.String(), Version: "4", GroupKey: "{}:" + ls.String(),
	}
}

func labelSet(ls labels.Labels) model.LabelSet {
	out := make(model.LabelSet, ls.Len())
	ls.Range(func(l labels.Label) { out[model.LabelName(l.Name)] = model.LabelValue(l.Value) })
	return out
}

// webhook posts documents to a URL, which is a secret: errors have its host only.
type webhook struct {
	source   auth.Secret
	external *url.URL
	client   *http.Client
}

// deliver implements receiver.
func (w *webhook) deliver(ctx context.Context, all []alert) (Delivery, error) {
	text, err := w.source.Read(ctx)
	var to *url.URL
	if err == nil {
		to, err = webhookURL(text)
	}
	if err != nil {
		return leftAll(all), fmt.Errorf("webhook of %s: %w", w.source, err)
	}
	return direct(ctx, all, func(ctx context.Context, a alert) error {
		body, err := json.Marshal(newDocument(a, w.external, time.Now()))
		if err == nil {
			err = post(ctx, w.client, to, body)
		}
		if err != nil {
			return fmt.Errorf("notify the webhook at %s: %w", to.Host, hush(err, to))
		}
		return nil
	})
}

func leftAll(all []alert) (d Delivery) {
	for _, a := range all {
		d.Left = append(d.Left, a.from)
	}
	return d
}

// refusals are the answers that say that a receiver will never accept a message.
var refusals = []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}

// hush returns an error without the parts of a URL that may be secret, which both the client and
// the receiver may have put into it.
func hush(err error, u *url.URL) error {
	var status *statusError
	if errors.As(err, &status) {
		text := status.text
		for _, part := range secretParts(u) {
			text = strings.ReplaceAll(text, part, "…")
		}
		out := &statusError{status.code, status.status, text}
		if slices.Contains(refusals, status.code) {
			return fmt.Errorf("%w: %w", errRefused, out)
		}
		return out
	}
	var sending *url.Error // its text has the whole URL, also that of a redirect
	if errors.As(err, &sending) {
		return sending.Err
	}
	return err
}

// secretParts returns what of a URL an answer must not be repeated with, the longest first.
func secretParts(u *url.URL) (out []string) {
	password, _ := u.User.Password()
	parts := []string{u.RequestURI(), u.Path, u.EscapedPath(), u.RawQuery, password}
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		parts = append(parts, segment)
	}
	for _, p := range parts {
		if len(strings.Trim(p, "/")) >= 4 { // shorter texts are no secrets
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return out
}
