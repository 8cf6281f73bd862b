// Package rulefn evaluates the rule groups of tenants without a server: each call evaluates what is
// due, and all that is remembered between two calls lies in the store (package rulestate). Calls
// may overlap, be left out, or be killed at any time: every evaluation counts once, and its samples
// and notifications are delivered at least once.
//
//	list rules/ ─▶ groups that are due ─▶ read their states ─▶ write samples that may not be written
//	    ─▶ evaluate in memory ─▶ commit the states ─▶ write samples ─▶ send notifications
package rulefn

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"

	"github.com/promlake/promlake/internal/settings"
)

// Settings of the evaluation. The tags are those of package settings. Flags that Mimir or
// Prometheus have are named as there.
type Settings struct {
	Interval    time.Duration `name:"ruler.evaluation-interval" default:"1m" min:"1s" help:"Interval of rule groups that name none." when:"Rarely."`
	QueryOffset time.Duration `name:"ruler.query-offset" default:"0s" min:"0" help:"How far before its time an evaluation reads and writes, for rule groups without query_offset." when:"Rarely: --ruler.sample-delay does not shift the results."`
	SampleDelay time.Duration `name:"ruler.sample-delay" default:"0s" min:"0" help:"Time that samples take from their senders to the store. Evaluations take place that much later; the time for which they count stays." when:"With mode buffered; the AWS stack sets it."`
	CatchUp     time.Duration `name:"ruler.catch-up" default:"5m" min:"1m" help:"Evaluations that were missed are made up for if they are at most this old. Older ones are counted as missed, as in Prometheus." when:"Raise it if gaps after outages matter more than the time to close them."`
	ResendDelay time.Duration `name:"ruler.resend-delay" default:"1m" min:"0" help:"Least time before an alert is sent again to Alertmanager." when:"Rarely."`

	OutageTolerance time.Duration `name:"ruler.for-outage-tolerance" default:"1h" min:"0" help:"Longest time since the last ALERTS_FOR_STATE of another program, such as a server, after which alerts continue its \"for\" time when a function evaluates their group for the first time." when:"Raise it if nothing evaluates the rules for longer than that before functions do."`
	GracePeriod     time.Duration `name:"ruler.for-grace-period" default:"10m" min:"0" help:"Least time between the first evaluation and an alert that continues the \"for\" time of another program. Alerts with a shorter \"for\" begin again." when:"Rarely."`

	MaxSeries     int   `name:"ruler.max-series-per-group" default:"20000" min:"1" help:"Series that the rules of a group may write at one time. A rule that goes beyond it has no result." when:"Raise it, and the function's memory, for groups with many series."`
	MaxStateBytes int64 `name:"ruler.max-state-bytes" type:"bytes" default:"16MiB" min:"1KiB" help:"Size of the object with the state of a rule group. A group with a larger state is not evaluated." when:"Together with --ruler.max-series-per-group."`
	MaxRules      int   `name:"ruler.max-rules-per-invocation" default:"1000" min:"1" help:"Rules that one invocation evaluates if there is a queue for others. Groups are not divided." when:"Lower it if invocations take longer than their interval."`

	Alertmanagers  string        `name:"ruler.alertmanager-url" placeholder:"URLS" secret:"" help:"URLs of Alertmanagers without /api/v2/alerts, separated by commas. Each gets all notifications. Without one there are none." when:"Set it to be notified of alerts."`
	NotifyTimeout  time.Duration `name:"ruler.notification-timeout" default:"10s" above:"0" help:"Longest time of a request to an Alertmanager." when:"Rarely."`
	ExternalLabels string        `name:"ruler.external-labels" placeholder:"NAME=VALUE,…" help:"Labels that notifications get unless their alerts have them, and that templates have as $externalLabels, as Prometheus' external_labels. Separated by commas." when:"If several systems send to one Alertmanager: cluster=prod."`
	RelabelConfigs string        `name:"ruler.alert-relabel-configs" placeholder:"YAML" help:"Relabeling of notifications after --ruler.external-labels, which may drop them: the YAML text of Prometheus' alert_relabel_configs, a list." when:"To drop alerts, or to change their labels, on the way to Alertmanager."`
	ExternalURL    string        `name:"ruler.external.url" placeholder:"URL" help:"URL at which users reach the query function, for links in notifications." when:"Set it with --ruler.alertmanager-url."`
}

// DefaultSettings returns the settings for ordinary use.
func DefaultSettings() Settings { return settings.Default[Settings]() }

// Validate returns an error that names the flags of invalid settings.
func (s Settings) Validate() error {
	errs := []error{settings.Check(s)}
	if _, err := s.alertmanagers(); err != nil {
		errs = append(errs, err)
	}
	if _, err := s.external(); err != nil {
		errs = append(errs, err)
	}
	if _, err := s.externalLabels(); err != nil {
		errs = append(errs, err)
	}
	if _, err := s.relabeling(); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// externalLabels returns the labels that notifications get.
func (s Settings) externalLabels() (labels.Labels, error) {
	b := labels.NewBuilder(labels.EmptyLabels())
	for pair := range strings.SplitSeq(s.ExternalLabels, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok || value == "" || !model.UTF8Validation.IsValidLabelName(name) || !utf8.ValidString(value) || b.Get(name) != "" {
			return labels.EmptyLabels(), fmt.Errorf("ruler.external-labels: want NAME=VALUE, separated by commas, each name once, got %q", s.ExternalLabels)
		}
		b.Set(name, value)
	}
	return b.Labels(), nil
}

// relabeling returns what notifications are relabeled with, which is checked as upstream's
// configuration file is.
func (s Settings) relabeling() (out []*relabel.Config, err error) {
	if err := yaml.UnmarshalStrict([]byte(s.RelabelConfigs), &out); err != nil {
		return nil, fmt.Errorf("ruler.alert-relabel-configs: want YAML as in Prometheus' alert_relabel_configs: %w", err)
	}
	for i, c := range out {
		err := errors.New("it is empty")
		if c != nil {
			err = c.Validate(model.UTF8Validation)
		}
		if err != nil {
			return nil, fmt.Errorf("ruler.alert-relabel-configs: entry %d: %w", i+1, err)
		}
	}
	return out, nil
}

// alertmanagers returns the URLs of notifications. They may have passwords, so an error does not
// repeat them.
func (s Settings) alertmanagers() (out []*url.URL, err error) {
	for i, text := range strings.Split(s.Alertmanagers, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("ruler.alertmanager-url: want http://host or https://host, separated by commas, got another URL in place %d", i+1)
		}
		out = append(out, u)
	}
	return out, nil
}

// external returns the URL of links.
func (s Settings) external() (*url.URL, error) {
	u, err := url.Parse(s.ExternalURL)
	if err != nil || s.ExternalURL != "" && (u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
		return nil, fmt.Errorf("ruler.external.url: want http://host or https://host, got %q", s.ExternalURL)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}
