package promapp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/model/metadata"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/logging"

	"github.com/promlake/promlake/internal/app/promconfig"
	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/prom/spool"
)

// scraping is upstream's service discovery and scrape manager.
type scraping struct {
	manager   *scrape.Manager
	discovery *discovery.Manager
	cancel    context.CancelFunc // ends discovery
	running   sync.WaitGroup
	logger    *slog.Logger
}

// described makes appenders of scrapes, which read the metadata of a target from what its scrapes
// keep: upstream would compare the family of each sample with the metadata before it.
type described struct{ to *appender.Appendable }

// AppenderV2 implements storage.AppendableV2.
func (d described) AppenderV2(ctx context.Context) storage.AppenderV2 {
	kept, ok := scrape.MetricMetadataStoreFromContext(ctx)
	if !ok {
		return d.to.AppenderV2(ctx)
	}
	return d.to.Described(func(add func(family string, m metadata.Metadata)) {
		for _, m := range kept.ListMetadata() {
			add(m.MetricFamily, metadata.Metadata{Type: m.Type, Unit: m.Unit, Help: m.Help})
		}
	})
}

func newScraping(to *appender.Appendable, startTimestamps bool, sd *discovery.SDMetrics, reg prometheus.Registerer, logger *slog.Logger) (*scraping, error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &scraping{cancel: cancel, logger: logger}
	if s.discovery = discovery.NewManager(ctx, logger, reg, sd, discovery.Name("scrape")); s.discovery == nil {
		cancel()
		return nil, fmt.Errorf("start the discovery of targets: the log has the reason")
	}
	var err error
	s.manager, err = scrape.NewManager(&scrape.Options{
		PassMetadataInContext: true, ParseST: startTimestamps, DiscoveryReloadOnStartup: true,
	}, logger, logging.NewJSONFileLogger, nil, described{to}, reg)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start scraping: %w", err)
	}
	return s, nil
}

// apply makes a configuration the current one. The manager must know it before its targets come.
func (s *scraping) apply(c *promconfig.Config) error {
	if err := s.manager.ApplyConfig(c.Config); err != nil {
		return fmt.Errorf("apply scrape_configs: %w", err)
	}
	if err := s.discovery.ApplyConfig(c.Discoveries()); err != nil {
		return fmt.Errorf("apply the service discovery of scrape_configs: %w", err)
	}
	return nil
}

// start begins to discover and to scrape.
func (s *scraping) start() {
	s.running.Go(func() {
		if err := s.discovery.Run(); err != nil && err != context.Canceled { //nolint:errorlint // upstream returns it as it is
			s.logger.Error("the discovery of targets ended", "err", err)
		}
	})
	s.running.Go(func() {
		if err := s.manager.Run(s.discovery.SyncCh()); err != nil {
			s.logger.Error("scraping ended", "err", err)
		}
	})
}

// stop ends scraping. Series do not become stale: a process that follows continues them.
func (s *scraping) stop() {
	s.cancel()
	s.manager.Stop()
	s.running.Wait()
}

// Bounds of how long scrapes and results of rules wait for each other before they go to a
// directory.
const (
	minLinger = time.Second
	maxLinger = 4 * time.Second
	// lingerShare is the inverse of the part of the shortest interval for which they wait.
	lingerShare = 4
)

// pace sets how long samples wait for each other, by the shortest interval of all scrapes and
// groups of rules: fewer segments cost less to write, to read and to merge. It is safe for
// concurrent use. The nil pace sets nothing.
type pace struct {
	queue *spool.Spool

	mu        sync.Mutex
	intervals map[any]time.Duration // the shortest one of each origin that has any
}

// note sets the shortest interval of an origin; 0 means that it has none.
func (p *pace) note(origin any, shortest time.Duration) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.intervals[origin] = shortest; shortest == 0 {
		delete(p.intervals, origin)
	}
	p.queue.SetLinger(lingerOf(p.intervals))
}

// lingerOf returns how long samples wait for each other.
func lingerOf(intervals map[any]time.Duration) time.Duration {
	out := maxLinger
	for _, d := range intervals {
		out = min(out, d/lingerShare)
	}
	return max(out, minLinger)
}

// shortest returns the shortest interval, 0 if there are none.
func shortest[T any](all []T, interval func(T) time.Duration) (out time.Duration) {
	for _, x := range all {
		out = min(cmp.Or(out, interval(x)), interval(x))
	}
	return out
}

func scrapeInterval(s *config.ScrapeConfig) time.Duration { return time.Duration(s.ScrapeInterval) }
