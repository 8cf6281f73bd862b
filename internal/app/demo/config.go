// Package demo is an example of a configuration for a newcomer, who sees live data without
// installing anything: a running Promlake scrapes itself and the metrics of its machine, which it
// serves by the names and labels of Prometheus' node_exporter, so that its dashboards work.
package demo

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	promcommon "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/promlake/promlake/internal/app/promconfig"
	"github.com/promlake/promlake/internal/base/settings"
)

// NodePath is where a process of the demo serves the metrics of its machine.
const NodePath = "/metrics/node"

// nodeJob is the job of the machine's metrics.
const nodeJob = "node"

var (
	//go:embed example/prometheus.yml
	exampleConfig []byte
	//go:embed example/rules.yml
	exampleRules []byte
)

// Config returns the example configuration for the process at url, which is scraped with the token
// if it is not "". Without metrics of the machine it is logged, and only the process is scraped.
func Config(s Settings, url, token string, logger *slog.Logger) (*promconfig.Config, error) {
	c, err := promconfig.Parse(exampleConfig, "", logger)
	if err != nil {
		return nil, fmt.Errorf("read the example configuration: %w", err)
	}
	c.RuleTexts = map[string][]byte{"rules.yml": exampleRules}
	instance, err := s.instance()
	if err != nil {
		return nil, err
	}
	if _, err := NewCollector(s.ProcPath, logger, time.Now); err != nil {
		logger.Warn("the demo has no metrics of this machine", "err", err)
		c.Without(nodeJob)
	}
	_, address, _ := strings.Cut(url, "://")
	c.GlobalConfig.ScrapeInterval, c.GlobalConfig.EvaluationInterval = model.Duration(s.Interval), model.Duration(s.Interval)
	for _, x := range c.Scrapes {
		group := &targetgroup.Group{Source: x.JobName, Targets: []model.LabelSet{{model.AddressLabel: model.LabelValue(address)}}}
		if x.JobName == nodeJob {
			group.Labels = model.LabelSet{model.InstanceLabel: model.LabelValue(instance)}
		}
		x.ServiceDiscoveryConfigs = discovery.Configs{discovery.StaticConfig{group}}
		x.ScrapeInterval, x.ScrapeTimeout = model.Duration(s.Interval), model.Duration(s.Interval)
		if token != "" {
			x.HTTPClientConfig.Authorization = &promcommon.Authorization{Type: "Bearer", Credentials: promcommon.Secret(token)}
		}
	}
	return c, nil
}

// NodeHandler serves the metrics of this machine, or an error if there are none.
func NodeHandler(s Settings, logger *slog.Logger, now func() time.Time) http.Handler {
	c, err := NewCollector(s.ProcPath, logger, now)
	reg := prometheus.NewRegistry()
	if err == nil {
		err = reg.Register(c)
	}
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, fmt.Sprintf("no metrics of this machine: %s", err), http.StatusNotFound)
		})
	}
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

// Settings of the demo. The tags are those of package settings.
type Settings struct {
	Interval time.Duration `name:"demo.interval" default:"5s" min:"100ms" help:"Time between two scrapes of the demo." when:"Lower it for livelier graphs."`
	Instance string        `name:"demo.instance" placeholder:"NAME" help:"Label instance of the machine's metrics. Default: the host name." when:"Set it to hide the host name."`
	Offer    bool          `name:"demo.offer" negatable:"" default:"true" help:"Let the page of a server that scrapes nothing start the demo. Operators may do it; without --auth.tokens, only if --listen is an address of this machine alone." when:"Turn it off if the page must not offer it."`
	ProcPath string        `name:"demo.proc-path" default:"/proc" help:"Mount point of the proc filesystem." when:"Set it in a container that mounts the host's elsewhere."`
}

// Validate returns an error for every invalid setting, by the name of its flag.
func (s Settings) Validate() error {
	errs := []error{settings.Check(s)}
	if s.ProcPath == "" {
		errs = append(errs, errors.New("demo.proc-path: want a directory, got nothing"))
	}
	return errors.Join(errs...)
}

// instance returns the instance label of the machine's metrics.
func (s Settings) instance() (string, error) {
	if s.Instance != "" {
		return s.Instance, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name: %w", err)
	}
	return name, nil
}
