package promapp

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	v1 "github.com/prometheus/prometheus/web/api/v1"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/promconfig"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/prom/spool"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Settings of scraping, rules and notifications. The tags are those of package settings. Flags that
// Prometheus has are named as there.
type Settings struct {
	ConfigFile string `name:"config.file" basic:"" placeholder:"FILE" help:"Prometheus configuration file: what is scraped, which rules are evaluated, and the Alertmanagers. Default: none." when:"Set it to scrape and to evaluate rules without a Prometheus."`
	Tenant     string `name:"config.tenant" default:"anonymous" help:"Tenant that scraped samples and results of rules are written to, and whose data rules read." when:"Set it if the server has several tenants."`
	Lifecycle  bool   `name:"web.enable-lifecycle" default:"false" help:"Read --config.file again on POST or PUT /-/reload. SIGHUP does it in any case." when:"Set it if something else than a signal changes the configuration."`
	// ExternalURL is where users reach this server, for the links in notifications. "": the host
	// name and the port of this process.
	ExternalURL string `kong:"-"`

	StartTimestamps bool `name:"scrape.start-timestamps" default:"false" help:"Store the start timestamps of scraped counters and histograms, and read OpenMetrics' _created lines as such." when:"Set it together with --query.use-start-timestamps."`

	OutageTolerance time.Duration `name:"rules.alert.for-outage-tolerance" default:"1h" min:"0" help:"Longest outage after which alerts continue with the \"for\" time that they had." when:"Raise it if outages take longer."`
	GracePeriod     time.Duration `name:"rules.alert.for-grace-period" default:"10m" min:"0" help:"Least time between a restart and an alert that continues its \"for\" time. Alerts with a shorter \"for\" begin again." when:"Rarely."`
	ResendDelay     time.Duration `name:"rules.alert.resend-delay" default:"1m" min:"0" help:"Least time before an alert is sent again to Alertmanager." when:"Rarely."`
	MaxConcurrency  int64         `name:"rules.max-concurrent-evals" default:"4" min:"1" help:"Rules that do not depend on each other and are evaluated at once within groups. 1 evaluates the rules of a group one after another." when:"Raise it if groups take longer than their interval and processors are free."`

	Evaluate     bool          `name:"ruler.evaluate" basic:"" negatable:"" default:"true" help:"Evaluate the rules that tenants have set by the ruler API." when:"Turn it off on all but one or two of several processes over one store."`
	PollInterval time.Duration `name:"ruler.poll-interval" default:"30s" min:"1ms" help:"Time between two listings of the store for rules that other processes have changed. Changes by this process count at once." when:"Lower it if changes must count sooner; each listing is one request."`

	NotificationQueue int  `name:"alertmanager.notification-queue-capacity" default:"10000" min:"1" help:"Notifications that wait for an Alertmanager. Further ones replace the oldest." when:"Rarely."`
	NotificationBatch int  `name:"alertmanager.notification-batch-size" default:"256" min:"1" help:"Notifications in one request to an Alertmanager." when:"Rarely."`
	Drain             bool `name:"alertmanager.drain-notification-queue-on-shutdown" negatable:"" default:"true" help:"Send waiting notifications before the process ends." when:"Rarely."`

	Queue spool.Settings `embed:""`

	// Limits are those of the rules that tenants have set.
	Limits rulestore.Limits `kong:"-"`
	// Templates are those of the API for rules.
	Templates ruletemplate.Limits `kong:"-"`

	// Config replaces the file: it is called at the start and at each reload, with the URL of this
	// process and the token of requests to it. nil: the file is read.
	Config Source `kong:"-"`
}

// Source makes a configuration for the process at url, which takes the token if it is not "".
type Source func(url, token string, logger *slog.Logger) (*promconfig.Config, error)

// Configured reports whether there is a configuration.
func (s Settings) Configured() bool { return s.ConfigFile != "" || s.Config != nil }

// Enabled reports whether there is something to scrape or to evaluate.
func (s Settings) Enabled() bool { return s.Configured() || s.Evaluate }

// Validate returns an error that names the flags of invalid settings.
func (s Settings) Validate() error {
	errs := []error{settings.Check(s)}
	if _, err := tenant.Parse(s.Tenant); err != nil {
		errs = append(errs, fmt.Errorf("config.tenant: %w", err))
	}
	if s.Enabled() && s.Queue.Dir == "" {
		errs = append(errs, errors.New("scrape.queue-dir: want a directory, got nothing"))
	}
	return errors.Join(errs...)
}

// externalURL returns the URL of links to this process, which answers at own on this machine.
func (s Settings) externalURL(own string) (*url.URL, error) {
	text := s.ExternalURL
	if text == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("read host name: %w", err)
		}
		u, err := url.Parse(own)
		if err != nil {
			return nil, fmt.Errorf("parse the URL of this process: %w", err)
		}
		text = "http://" + host
		if p := u.Port(); p != "" {
			text += ":" + p
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("web.external-url: want http://host or https://host, got %q", text)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// GlobalURLs returns how other machines reach what this one scrapes on itself. listen is the
// address of the process, host:port.
func (s Settings) GlobalURLs(listen string) v1.GlobalURLOptions {
	external, err := s.externalURL("http://" + listen)
	if err != nil { // Build refuses these settings
		return v1.GlobalURLOptions{ListenAddress: listen}
	}
	return v1.GlobalURLOptions{ListenAddress: listen, Host: external.Host, Scheme: external.Scheme}
}

// load reads the configuration. Without one it is Prometheus' default, which scrapes nothing.
func (s Settings) load(p process.Parts) (*promconfig.Config, error) {
	switch {
	case s.Config != nil:
		return s.Config(p.URL, p.Token, p.Logger)
	case s.ConfigFile != "":
		return promconfig.Load(s.ConfigFile, p.Logger)
	default:
		return promconfig.Parse(nil, ".", p.Logger)
	}
}
