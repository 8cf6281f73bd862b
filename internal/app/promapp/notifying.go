package promapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	httpconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/targetgroup"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/sigv4"

	"github.com/promlake/promlake/internal/app/promconfig"
)

// notifying is upstream's notifier and the discovery of Alertmanagers.
type notifying struct {
	manager   *notifier.Manager
	discovery *discovery.Manager
	ctx       context.Context
	cancel    context.CancelFunc // ends discovery
	running   sync.WaitGroup
	logger    *slog.Logger

	mu    sync.Mutex
	sets  map[string]alertmanagers        // of the configuration, by the names of their discovery
	found map[string][]*targetgroup.Group // what was discovered last, by the same names
}

// alertmanagers are the Alertmanagers of one entry of the configuration.
type alertmanagers struct {
	config *config.AlertmanagerConfig
	client *http.Client // for requests of silences
}

func newNotifying(s Settings, sd *discovery.SDMetrics, reg prometheus.Registerer, logger *slog.Logger) (*notifying, error) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &notifying{ctx: ctx, cancel: cancel, logger: logger}
	if n.discovery = discovery.NewManager(ctx, logger, reg, sd, discovery.Name("notify")); n.discovery == nil {
		cancel()
		return nil, errors.New("start the discovery of Alertmanagers: the log has the reason")
	}
	n.manager = notifier.NewManager(&notifier.Options{
		QueueCapacity: s.NotificationQueue, DrainOnShutdown: s.Drain, MaxBatchSize: s.NotificationBatch, Registerer: reg,
	}, model.UTF8Validation, logger)
	return n, nil
}

func (n *notifying) apply(c *promconfig.Config) error {
	if err := n.manager.ApplyConfig(c.Config); err != nil {
		return fmt.Errorf("apply alerting: %w", err)
	}
	if err := n.discovery.ApplyConfig(c.Alertmanagers()); err != nil {
		return fmt.Errorf("apply the service discovery of alerting: %w", err)
	}
	sets := map[string]alertmanagers{}
	for name, set := range c.AlertingConfig.AlertmanagerConfigs.ToMap() {
		client, err := httpconfig.NewClientFromConfig(set.HTTPClientConfig, "silences")
		if err == nil && set.SigV4Config != nil {
			client.Transport, err = sigv4.NewSigV4RoundTripper(set.SigV4Config, client.Transport)
		}
		if err != nil {
			return fmt.Errorf("apply alerting: %w", err)
		}
		sets[name] = alertmanagers{set, client}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sets = sets
	return nil
}

func (n *notifying) start() {
	n.running.Go(func() {
		if err := n.discovery.Run(); err != nil && !errors.Is(err, context.Canceled) {
			n.logger.Error("the discovery of Alertmanagers ended", "err", err)
		}
	})
	found := make(chan map[string][]*targetgroup.Group)
	n.running.Go(func() {
		defer close(found)
		for groups := range n.discovery.SyncCh() { // until discovery ends
			n.mu.Lock()
			n.found = groups
			n.mu.Unlock()
			select {
			case found <- groups:
			case <-n.ctx.Done():
			}
		}
	})
	n.running.Go(func() { n.manager.Run(found) })
}

// stop ends notifications after those that wait were sent, or when ctx ends.
func (n *notifying) stop(ctx context.Context) error {
	n.manager.Stop()
	n.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.running.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("send the notifications that wait: %w", ctx.Err())
	}
}

// tenantLabel names the tenant in notifications: Alertmanager would take equal alerts of two
// tenants for one.
const tenantLabel = "tenant"

// named adds the tenant to the alerts of rules that it has set. It implements rules.Sender.
type named struct {
	to     rules.Sender
	tenant string
}

// Send implements rules.Sender. A label of a rule cannot name another tenant.
func (n named) Send(alerts ...*notifier.Alert) {
	for _, a := range alerts {
		a.Labels = labels.NewBuilder(a.Labels).Set(tenantLabel, n.tenant).Labels()
		a.GeneratorURL += "&" + tenantLabel + "=" + url.QueryEscape(n.tenant)
	}
	n.to.Send(alerts...)
}
