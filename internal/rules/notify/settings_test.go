package notify_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/rules/notify"
)

// TestSettings: each mistake is an error that names its flag and repeats no secret.
func TestSettings(t *testing.T) {
	for want, change := range map[string]func(*notify.Settings){
		"ruler.alertmanager-url: want http://host or https://host, separated by commas, got another URL in place 2":       func(s *notify.Settings) { s.Alertmanagers = "https://a, ftp://user:hidden@b" },
		"ruler.webhook-url: want http://host/path, https://host/path, file:PATH or ssm:NAME, got another text":            func(s *notify.Settings) { s.Webhook = "ftp://a/hidden" },
		"ruler.webhook-url: want http://host/path":                                                                        func(s *notify.Settings) { s.Webhook = "https://a/hidden\x7f" },
		`ruler.sns-topic-arn: want arn:aws:sns:REGION:ACCOUNT:NAME, got "arn:aws:sqs:eu-central-1:123456789012:x"`:        func(s *notify.Settings) { s.Topic = "arn:aws:sqs:eu-central-1:123456789012:x" },
		"ruler.alertmanager-url, ruler.webhook-url, ruler.sns-topic-arn: want one of them":                                func(s *notify.Settings) { s.Alertmanagers, s.Webhook = "http://a", "http://b/hidden" },
		`ruler.external-labels: want NAME=VALUE, separated by commas, each name once, got "cluster"`:                      func(s *notify.Settings) { s.ExternalLabels = "cluster" },
		`ruler.external-labels: want NAME=VALUE, separated by commas, each name once, got "cluster=a,cluster=b"`:          func(s *notify.Settings) { s.ExternalLabels = "cluster=a,cluster=b" },
		`ruler.external-labels: want NAME=VALUE, separated by commas, each name once, got "=a"`:                           func(s *notify.Settings) { s.ExternalLabels = "=a" },
		"ruler.alert-relabel-configs: want YAML as in Prometheus' alert_relabel_configs: unknown relabel action \"dorp\"": func(s *notify.Settings) { s.RelabelConfigs = "[{action: dorp}]" },
	} {
		s := settings.Default[notify.Settings]()
		change(&s)
		err := s.Validate()
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "hidden")
	}
	for _, webhook := range []string{"https://a/b", "ssm:/promlake/webhook", "file:/etc/webhook", "http://user:password@a"} {
		s := settings.Default[notify.Settings]()
		s.Webhook = webhook
		require.NoError(t, s.Validate())
		require.True(t, s.Direct())
	}
	for _, topic := range []string{"arn:aws:sns:eu-central-1:123456789012:alerts", "arn:aws-us-gov:sns:us-gov-west-1:123456789012:a_b-c.fifo"} {
		s := settings.Default[notify.Settings]()
		s.Topic = topic
		require.NoError(t, s.Validate())
		require.True(t, s.Direct())
	}
	for _, name := range []string{"Alertmanagers", "Webhook"} {
		field, ok := reflect.TypeFor[notify.Settings]().FieldByName(name)
		require.True(t, ok)
		_, secret := field.Tag.Lookup("secret")
		require.True(t, secret, "a URL may have a password")
	}
}
