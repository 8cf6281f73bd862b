package demo

import (
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	promcommon "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"

	"github.com/promlake/promlake/internal/app/promconfig"
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
