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

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/rules/notify"
	"github.com/promlake/promlake/internal/rules/rulestore"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
)

// Settings of the evaluation. The tags are those of package settings. Flags that Mimir or
// Prometheus have are named as there.
type Settings struct {
	Interval    time.Duration `name:"ruler.evaluation-interval" default:"1m" min:"1s" help:"Interval of rule groups that name none." when:"Rarely."`
	QueryOffset time.Duration `name:"ruler.query-offset" default:"0s" min:"0" help:"How far before its time an evaluation reads and writes, for rule groups without query_offset." when:"Rarely: --ruler.sample-delay does not shift the results."`
	SampleDelay time.Duration `name:"ruler.sample-delay" default:"0s" min:"0" help:"Time that samples take from their senders to the store. Evaluations take place that much later; the time for which they count stays." when:"With mode buffered; the AWS stack sets it."`
	CatchUp     time.Duration `name:"ruler.catch-up" default:"5m" min:"1m" help:"Evaluations that were missed are made up for if they are at most this old. Older ones are counted as missed, as in Prometheus." when:"Raise it if gaps after outages matter more than the time to close them."`

	OutageTolerance time.Duration `name:"ruler.for-outage-tolerance" default:"1h" min:"0" help:"Longest time since the last ALERTS_FOR_STATE of another program, such as a server, after which alerts continue its \"for\" time when a function evaluates their group for the first time." when:"Raise it if nothing evaluates the rules for longer than that before functions do."`
	GracePeriod     time.Duration `name:"ruler.for-grace-period" default:"10m" min:"0" help:"Least time between the first evaluation and an alert that continues the \"for\" time of another program. Alerts with a shorter \"for\" begin again." when:"Rarely."`

	MaxSeries     int   `name:"ruler.max-series-per-group" default:"20000" min:"1" help:"Series that the rules of a group may write at one time. A rule that goes beyond it has no result." when:"Raise it, and the function's memory, for groups with many series."`
	MaxStateBytes int64 `name:"ruler.max-state-bytes" type:"bytes" default:"16MiB" min:"1KiB" help:"Size of the object with the state of a rule group. A group with a larger state is not evaluated." when:"Together with --ruler.max-series-per-group."`
	MaxRules      int   `name:"ruler.max-rules-per-invocation" default:"1000" min:"1" help:"Rules that one invocation evaluates if there is a queue for others. Groups are not divided." when:"Lower it if invocations take longer than their interval."`

	// Limits are those of the rules that tenants have set. A zero is the default.
	Limits rulestore.Limits `kong:"-"`

	Notify notify.Settings `embed:""`

	// Templates are those of the API for rules.
	Templates ruletemplate.Limits `kong:"-"`

	ExternalURL string `name:"ruler.external.url" placeholder:"URL" help:"URL at which users reach the query function, for links in notifications." when:"Set it with a receiver of notifications."`
}

// Validate returns an error that names the flags of invalid settings.
func (s Settings) Validate() error {
	_, err := s.external()
	return errors.Join(settings.Check(s), s.Notify.Validate(), err)
}

// Sender returns the sender of notifications to the receiver of the settings; nil if there is none.
func (s Settings) Sender() (Sender, error) {
	u, err := s.external()
	if err != nil {
		return nil, err
	}
	sender, err := s.Notify.Sender(u)
	if sender == nil || err != nil {
		return nil, err
	}
	return sender, nil
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

// metrics count what functions do with rules.
type metrics struct {
	evaluations   *prometheus.CounterVec
	groups        *prometheus.CounterVec
	missed        prometheus.Counter
	samples       prometheus.Counter
	refused       prometheus.Counter
	notifications *prometheus.CounterVec
	redelivered   prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_rules_"}
	return &metrics{
		evaluations:   f.CountersOf("evaluations_total", "Evaluations of rules by functions.", "result", "ok", "failed"),
		groups:        f.CountersOf("groups_total", "Rule groups by what became of their evaluation: committed, overtaken by another invocation, failed, or invalid.", "result", "committed", "overtaken", "failed", "invalid"),
		missed:        f.Counter("iterations_missed_total", "Evaluations of rule groups that were too old to be made up for."),
		samples:       f.Counter("samples_total", "Samples that rules have written, with those that were written again."),
		refused:       f.Counter("refused_writes_total", "Writes of rules of which a part was refused. The log has the reasons."),
		notifications: f.CountersOf("notifications_total", "Notifications to the receiver: sent, failed, or dropped because too many of a group waited.", "result", "sent", "failed", "dropped"),
		redelivered:   f.Counter("redelivered_total", "Evaluations of rule groups whose results were delivered again, because it was not known whether they had been."),
	}
}
