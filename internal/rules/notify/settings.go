// Package notify sends the notifications of functions: to Alertmanagers, or directly to a webhook
// or a topic of Amazon SNS.
//
// An Alertmanager groups, repeats and merges what it gets, so it gets each alert once a minute. A
// webhook and a topic get each event of an alert in a message of its own: that it fires, that it
// still fires after the repeat interval, and that it is resolved.
package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go/logging"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/relabel"
	"go.yaml.in/yaml/v2"

	"github.com/promlake/promlake/internal/access/auth"
)

// Settings of the receivers. The tags are those of package settings.
type Settings struct {
	Alertmanagers  string        `name:"ruler.alertmanager-url" placeholder:"URLS" secret:"" help:"URLs of Alertmanagers without /api/v2/alerts, separated by commas. Each gets all notifications. Without one, a webhook or a topic there are none." when:"Set it to be notified of alerts."`
	Webhook        string        `name:"ruler.webhook-url" placeholder:"URL" secret:"" help:"URL of a webhook instead of an Alertmanager, or its source: file:PATH or ssm:NAME. It gets a POST for each event of an alert, with the JSON of Alertmanager's webhooks." when:"To be notified without an Alertmanager."`
	Topic          string        `name:"ruler.sns-topic-arn" placeholder:"ARN" help:"Topic of Amazon SNS instead of an Alertmanager. It gets a message for each event of an alert." when:"To be notified by e-mail, SMS or a queue without an Alertmanager."`
	RepeatInterval time.Duration `name:"ruler.repeat-interval" default:"4h" min:"15m" help:"Least time before an alert that still fires is sent again to --ruler.webhook-url or --ruler.sns-topic-arn. The end of an alert that could not be sent is tried again for this long." when:"Raise it for fewer reminders."`
	ResendDelay    time.Duration `name:"ruler.resend-delay" default:"1m" min:"0" help:"Least time before an alert is sent again to Alertmanager." when:"Rarely."`
	Timeout        time.Duration `name:"ruler.notification-timeout" default:"10s" above:"0" help:"Longest time of a request to an Alertmanager, a webhook or a topic." when:"Rarely."`
	ExternalLabels string        `name:"ruler.external-labels" placeholder:"NAME=VALUE,…" help:"Labels that notifications get unless their alerts have them, and that templates have as $externalLabels, as Prometheus' external_labels. Separated by commas." when:"If several systems send to one Alertmanager: cluster=prod."`
	RelabelConfigs string        `name:"ruler.alert-relabel-configs" placeholder:"YAML" help:"Relabeling of notifications after --ruler.external-labels, which may drop them: the YAML text of Prometheus' alert_relabel_configs, a list." when:"To drop alerts, or to change their labels, on the way to Alertmanager."`
}

// Validate returns an error that names the flags of settings that are invalid for another reason
// than the limits of their tags.
func (s Settings) Validate() error {
	var errs []error
	receivers := 0
	for _, text := range []string{s.Alertmanagers, s.Webhook, s.Topic} {
		if strings.TrimSpace(text) != "" {
			receivers++
		}
	}
	if receivers > 1 {
		errs = append(errs, errors.New("ruler.alertmanager-url, ruler.webhook-url, ruler.sns-topic-arn: want one of them"))
	}
	if _, err := s.alertmanagers(); err != nil {
		errs = append(errs, err)
	}
	if s.Webhook != "" && !auth.IsReference(s.Webhook) {
		if _, err := webhookURL(s.Webhook); err != nil {
			errs = append(errs, fmt.Errorf("ruler.webhook-url: %w", err))
		}
	}
	if s.Topic != "" && !topicARN.MatchString(s.Topic) {
		errs = append(errs, fmt.Errorf("ruler.sns-topic-arn: want arn:aws:sns:REGION:ACCOUNT:NAME, got %q", s.Topic))
	}
	_, invalid := s.Labels()
	_, unreadable := s.relabeling()
	return errors.Join(append(errs, invalid, unreadable)...)
}

// Direct reports whether notifications go to a webhook or a topic. These do not merge what they get
// twice, so what they have accepted must be noted in the store.
func (s Settings) Direct() bool { return s.Webhook != "" || s.Topic != "" }

// Repeat is the least time before an alert that still fires is sent again.
func (s Settings) Repeat() time.Duration {
	if s.Direct() {
		return s.RepeatInterval
	}
	return s.ResendDelay
}

// Labels returns the labels that notifications get unless their alerts have them.
func (s Settings) Labels() (labels.Labels, error) {
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

// alertmanagers returns the URLs of Alertmanagers. They may have passwords, so an error does not
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

// webhookURL parses the URL of a webhook, which is a secret: an error does not repeat it.
func webhookURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("want http://host/path, https://host/path, file:PATH or ssm:NAME, got another text")
	}
	return u, nil
}

// topicARN has the region in its first group.
var topicARN = regexp.MustCompile(`^arn:aws[\w-]*:sns:([\w-]+):\d{12}:[\w-]+(?:\.fifo)?$`)

// Sender returns the sender to the receiver of the settings; nil if there is none. external is the
// address of the page. It does no I/O.
func (s Settings) Sender(external *url.URL) (*Sender, error) {
	add, err := s.Labels()
	if err != nil {
		return nil, err
	}
	relabeling, err := s.relabeling()
	if err != nil {
		return nil, err
	}
	urls, err := s.alertmanagers()
	if err != nil {
		return nil, err
	}
	out, client := &Sender{external: add, relabeling: relabeling}, &http.Client{Timeout: s.Timeout}
	switch {
	case s.Webhook != "":
		out.to = &webhook{auth.SecretOf(s.Webhook), external, client}
	case s.Topic != "":
		t := &topic{arn: s.Topic, external: external, timeout: s.Timeout}
		t.connect = sync.OnceValues(func() (*sns.Client, error) {
			cfg, err := awsconfig.LoadDefaultConfig(context.Background(), awsconfig.WithRegion(topicARN.FindStringSubmatch(s.Topic)[1]), awsconfig.WithLogger(logging.Nop{}))
			if err != nil {
				return nil, fmt.Errorf("load AWS configuration: %w", err)
			}
			return sns.NewFromConfig(cfg), nil
		})
		out.to = t
	case len(urls) > 0:
		out.to = &alertmanagers{urls, client}
	default:
		return nil, nil
	}
	return out, nil
}
