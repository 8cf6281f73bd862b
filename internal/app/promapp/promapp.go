// Package promapp scrapes targets, evaluates rules and notifies Alertmanagers as a configuration
// file of Prometheus says, with Prometheus' own packages, and evaluates the rules of tenants.
// Samples go to the ingest stage of the process, and rules read through its query stage.
package promapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/storage"
	"golang.org/x/sync/semaphore"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/promconfig"
	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/prom/spool"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/query/api"
	"github.com/promlake/promlake/internal/rules/ruletemplate"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Monitor is what a process scrapes and evaluates. The composition passes it the other stages
// before it is built.
type Monitor struct {
	process.Idle
	set    Settings
	tenant string
	sink   Sink
	query  Querying

	parts process.Parts
	queue *spool.Spool
	pace  *pace // nil: the store has an interval between flushes
	to    *appender.Appendable

	scraping  *scraping
	notifying *notifying
	ruling    *ruling      // of rule_files
	tenants   *tenantRules // nil: they are not evaluated

	reloading sync.Mutex                        // held while a configuration is applied
	current   atomic.Pointer[promconfig.Config] // nil before the first one is applied
	adopted   atomic.Bool                       // the current one came by Adopt
	met       *reloads
	signals   func() // ends the handling of SIGHUP
}

// Sink is the stage that samples are written to, and whose OTLP receiver follows the configuration
// (ingest.Stage).
type Sink interface {
	spool.Sink
	TranslateOTLP(section func(settings any) error) error
}

var (
	_ process.Stage  = (*Monitor)(nil)
	_ api.Monitoring = (*Monitor)(nil)
)

// New returns a monitor for settings that are enabled.
func New(s Settings) *Monitor { return &Monitor{set: s} }

// WriteTo names the stage that samples are written to.
func (m *Monitor) WriteTo(sink Sink) { m.sink = sink }

// ReadFrom names the stage that rules read from.
func (m *Monitor) ReadFrom(q Querying) { m.query = q }

// Build makes the monitor a stage. It is built after the stages that it uses. It begins to scrape
// and to evaluate rules once the process is ready. An invalid configuration is an error.
func (m *Monitor) Build(_ context.Context, p process.Parts) (process.Stage, error) {
	if m.sink == nil || m.query == nil {
		return nil, errors.New("start scraping: it needs an ingest and a query stage in the same process")
	}
	var err error
	if m.tenant, err = tenant.Parse(m.set.Tenant); err != nil {
		return nil, fmt.Errorf("config.tenant: %w", err)
	}
	m.parts = p
	c, err := m.set.load(p)
	if err != nil {
		return nil, err
	}
	f := promauto.With(p.Registry)
	m.met = &reloads{
		success: f.NewGauge(prometheus.GaugeOpts{Name: "prometheus_config_last_reload_successful", Help: "Whether the last configuration reload attempt was successful."}),
		at:      f.NewGauge(prometheus.GaugeOpts{Name: "prometheus_config_last_reload_success_timestamp_seconds", Help: "Timestamp of the last successful configuration reload."}),
	}
	_, local := p.Store.(objstore.Local)
	if local { // it has no interval between flushes, so that each scrape would be a segment
		m.set.Queue.Linger = minLinger
	}
	if m.queue, err = spool.Open(m.set.Queue, m.sink, p.Registry, p.Logger); err != nil {
		return nil, err
	}
	if local {
		m.pace = &pace{queue: m.queue, intervals: map[any]time.Duration{}}
	}
	if err = m.compose(c); err == nil {
		err = m.apply(c)
	}
	m.met.note(err, p.Now())
	if err != nil {
		return nil, errors.Join(err, m.Drain(context.Background()))
	}
	if m.set.Configured() { // from now on, so that no hangup ends a process that is becoming ready
		m.signals = onHangup(p.Ready, func() { _ = m.reload() })
	}
	go m.begin()
	return m, nil
}

// compose makes upstream's managers.
func (m *Monitor) compose(c *promconfig.Config) error {
	p := m.parts
	external, err := m.set.externalURL(p.URL)
	if err != nil {
		return err
	}
	m.to = appender.New(m.queue.AddTo(m.tenant))
	sd, err := discovery.CreateAndRegisterSDMetrics(p.Registry)
	if err != nil {
		return fmt.Errorf("register metrics of service discovery: %w", err)
	}
	if m.scraping, err = newScraping(m.to, m.set.StartTimestamps, sd, p.Registry, component(p.Logger, "scrape")); err != nil {
		return err
	}
	if m.notifying, err = newNotifying(m.set, sd, p.Registry, component(p.Logger, "notifier")); err != nil {
		return err
	}
	// Rules are loaded once there is a current configuration.
	offset := func() time.Duration { return time.Duration(m.current.Load().GlobalConfig.RuleQueryOffset) }
	texts := func(path string) ([]byte, bool) {
		text, ok := m.current.Load().RuleTexts[path]
		return text, ok
	}
	e := &evaluating{
		set: m.set, query: m.query, queue: m.queue, pace: m.pace, url: external, offset: offset, scheme: c.GlobalConfig.MetricNameValidationScheme, parser: parser.NewParser(query.ParserOptions()), logger: component(p.Logger, "rules"), now: p.Now, memory: p.Memory,
		answer: rules.EngineQueryFunc(m.query.Engine(), m.query), templates: ruletemplate.NewGuard(m.set.Templates, p.Registry),
	}
	link := external.String()
	m.ruling = e.ruling(m.tenant, appender.V1{Appendable: m.to}, rules.SendAlerts(m.notifying.manager, link), fileLoader{e.parser, m.set.Templates, texts, e.logger}, rules.NewGroupMetrics(p.Registry))
	if !m.set.Evaluate {
		return nil
	}
	to := func(id string) storage.Appendable {
		if id == m.tenant {
			return appender.V1{Appendable: m.to}
		}
		return appender.V1{Appendable: appender.New(m.queue.AddTo(id))}
	}
	notify := func(id string) rules.NotifyFunc {
		if id == m.tenant {
			return rules.SendAlerts(m.notifying.manager, link)
		}
		return rules.SendAlerts(named{m.notifying.manager, id}, link)
	}
	m.tenants = &tenantRules{
		evaluating: e, store: p.Store, to: to, notify: notify, met: newTenantMetrics(p.Registry), logger: component(p.Logger, "ruler"),
		wake: make(chan struct{}, 1), slots: semaphore.NewWeighted(updates), all: map[string]*owner{}, turned: map[string]turned{}, updating: map[string]bool{}, room: room{limit: e.memory.Limit() / roomShare},
	}
	return nil
}

func component(l *slog.Logger, name string) *slog.Logger { return l.With("component", name) }

// apply makes a configuration the current one. Every part gets it, even if another part refuses it,
// as with Prometheus.
func (m *Monitor) apply(c *promconfig.Config) error {
	for _, what := range c.Ignored {
		m.parts.Logger.Warn("a setting of the Prometheus configuration has no effect", "setting", what)
	}
	m.current.Store(c)
	m.to.SetOutOfOrderWindow(c.StorageConfig.TSDBConfig.OutOfOrderTimeWindow)
	if m.tenants != nil {
		m.tenants.apply(c)
	}
	m.pace.note(m, shortest(c.Scrapes, scrapeInterval))
	err := errors.Join(m.sink.TranslateOTLP(c.OTLP.Decode), m.scraping.apply(c), m.notifying.apply(c))
	files, failed := c.RulePaths()
	if failed == nil {
		failed = m.ruling.update(time.Duration(c.GlobalConfig.EvaluationInterval), c.GlobalConfig.ExternalLabels, files)
	}
	return errors.Join(err, failed)
}

// RulesChanged lets the rules of tenants be looked at soon, because this process has changed some.
func (m *Monitor) RulesChanged() {
	if m.tenants != nil {
		m.tenants.changed()
	}
}

// begin starts everything once the process is ready.
func (m *Monitor) begin() {
	<-m.parts.Ready
	m.reloading.Lock()
	defer m.reloading.Unlock()
	if m.met.stopped {
		return
	}
	m.notifying.start()
	m.scraping.start()
	m.ruling.start()
	if m.tenants != nil {
		m.tenants.start()
	}
	if !m.set.Configured() {
		return
	}
	c := m.current.Load()
	m.parts.Logger.Info("scraping and evaluating rules", "jobs", len(c.Scrapes), "rule files", len(c.RuleFiles), "tenant", m.tenant)
}

// Drain implements process.Stage: the last results of rules and scrapes are stored, or written to
// the queue on disk, and notifications are sent.
func (m *Monitor) Drain(ctx context.Context) error {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	if m.met.stopped {
		return nil
	}
	m.met.stopped = true
	if m.signals != nil {
		m.signals()
	}
	// Evaluations may take half of the time: the rest is for storing what they have written.
	evaluating, cancel := context.WithCancel(ctx)
	if end, ok := ctx.Deadline(); ok {
		evaluating, cancel = context.WithTimeout(ctx, time.Until(end)/2)
	}
	defer cancel()
	var errs []error
	if m.tenants != nil {
		errs = append(errs, m.tenants.stop(evaluating))
	}
	if m.ruling != nil {
		// Rules end before scraping does, so that no alert on missing samples fires.
		errs = append(errs, m.ruling.stop(evaluating))
	}
	if m.scraping != nil {
		m.scraping.stop()
	}
	if m.notifying != nil {
		errs = append(errs, m.notifying.stop(ctx))
	}
	return errors.Join(append(errs, m.queue.Close(ctx))...)
}

// reloads are the metrics of the configuration, and whether it may still be reloaded.
type reloads struct {
	success prometheus.Gauge
	at      prometheus.Gauge
	ok      atomic.Bool
	last    atomic.Int64 // ms of the last successful one
	stopped bool         // guarded by Monitor.reloading
}

// note records the result of a reload at a time.
func (r *reloads) note(err error, at time.Time) {
	r.ok.Store(err == nil)
	if err != nil {
		r.success.Set(0)
		return
	}
	r.last.Store(at.UnixMilli())
	r.success.Set(1)
	r.at.Set(float64(at.UnixMilli()) / 1000)
}
