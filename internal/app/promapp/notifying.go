package promapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/notifier"
	"github.com/prometheus/prometheus/rules"

	"github.com/promlake/promlake/internal/app/promconfig"
)

// notifying is upstream's notifier and the discovery of Alertmanagers.
type notifying struct {
	manager   *notifier.Manager
	discovery *discovery.Manager
	cancel    context.CancelFunc // ends discovery
	running   sync.WaitGroup
	logger    *slog.Logger
}

func newNotifying(s Settings, sd *discovery.SDMetrics, reg prometheus.Registerer, logger *slog.Logger) (*notifying, error) {
	ctx, cancel := context.WithCancel(context.Background())
	n := &notifying{cancel: cancel, logger: logger}
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
	return nil
}

func (n *notifying) start() {
	n.running.Go(func() {
		if err := n.discovery.Run(); err != nil && !errors.Is(err, context.Canceled) {
			n.logger.Error("the discovery of Alertmanagers ended", "err", err)
		}
	})
	n.running.Go(func() { n.manager.Run(n.discovery.SyncCh()) })
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
