// Package app composes Promlake: every stage in one process over one store.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/app/demo"
	"github.com/promlake/promlake/internal/app/doctorapp"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/pageapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/promapp"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/app/ruleapp"
	"github.com/promlake/promlake/internal/app/tenantapp"
	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/rules/ruler"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
	"github.com/promlake/promlake/internal/store/replica"
)

// Settings are those of all components.
type Settings struct {
	Process    process.Settings           `embed:"" group:"Process"`
	Ingest     ingest.Settings            `embed:"" group:"Ingest"`
	Query      queryapp.Settings          `embed:"" group:"Query"`
	Compaction compactapp.Schedule        `embed:"" group:"Compaction"`
	Compact    compactapp.Settings        `embed:"" group:"Compaction"`
	Uploads    uploadapp.Settings         `embed:"" group:"Compaction"`
	Publish    compactapp.PublishSettings `embed:"" group:"Compaction"`
	Prometheus promapp.Settings           `embed:"" group:"Scraping and rules"`
	Ruler      ruler.Settings             `embed:"" group:"Scraping and rules"`
	Page       pageapp.Settings           `embed:"" group:"Page"`
	Doctor     doctorapp.Served           `embed:"" group:"Page"`
	Tenants    tenantapp.Served           `embed:"" group:"Page"`
	Listeners  ListenerSettings           `embed:"" group:"Ingest"`
	Flight     FlightSettings             `embed:"" group:"Query"`
	Demo       bool                       `name:"demo" group:"Demo" default:"false" help:"Serve this machine's metrics at /metrics/node, scrape them and this process by an example configuration unless --config.file names another, and print example queries." when:"Set it to try Promlake out."`
	Feeder     demo.Settings              `embed:"" group:"Demo"`
}

// DefaultSettings serve and compact a local directory, without a demo.
func DefaultSettings() Settings {
	s := settings.Default[Settings]()
	s.Process, s.Compact = process.DefaultSettings(), compactapp.DefaultSettings()
	return s
}

// Run serves all stages until ctx ends, then flushes, answers pending requests and returns nil.
// Messages for the user at the terminal go to out.
func Run(ctx context.Context, s Settings, out io.Writer, logger *slog.Logger) error {
	if err := s.Validate(); err != nil {
		return fmt.Errorf("check settings: %w", err)
	}
	return process.Run(ctx, s.Process, logger, Builders(s, out)...)
}

// Validate reports invalid settings and those that contradict each other, by the names of the
// flags. A query reads the objects that there were when it began. The parser of a command line
// calls it.
func (s Settings) Validate() error {
	_, querying := s.Query.Query.WithDefaults()
	_, compacting := s.Compact.Stage().WithDefaults()
	if err := errors.Join(querying, compacting, s.Prometheus.Validate(), s.Ruler.Validate(), s.Listeners.Validate(), s.Feeder.Validate()); err != nil {
		return err
	}
	if s.Demo && s.Process.WebFile != "" {
		return errors.New("demo: it scrapes this server without TLS and without a user; leave out --demo or --web.config.file")
	}
	if s.Compaction.Enabled && s.Query.Query.Timeout >= s.Compact.DeletionDelay {
		return fmt.Errorf("query.timeout: want less than compactor.deletion-delay (%s), after which replaced objects are deleted, got %s",
			s.Compact.DeletionDelay, s.Query.Query.Timeout)
	}
	if err := s.Publish.Check(s.Compact.DeletionDelay); err != nil {
		return err
	}
	// In a directory, objects appear in the order of their times, however long a put takes.
	if _, local := storeurl.Directory(s.Process.Store); s.Compaction.Enabled && !local && s.Ingest.FlushTimeout >= s.Compact.SettleDelay {
		return fmt.Errorf("ingest.flush-timeout: want less than compactor.settle-delay (%s), after which this process merges segments of a bucket, so that no merge overlooks a segment that is still being written, got %s",
			s.Compact.SettleDelay, s.Ingest.FlushTimeout)
	}
	return nil
}

// Builders make the stages of a process, in the order in which it builds them. Messages for the
// user at the terminal go to out.
func Builders(s Settings, out io.Writer) []process.Builder {
	var writers []func(*ingest.Stage)
	var readers []func(*query.Stage)
	var monitor *promapp.Monitor
	s.Ingest.Limits.HA, s.Ingest.Limits.PendingUploads, s.Ingest.Limits.Queries = s.Query.Query.HA, s.Uploads.MaxPending, s.Query.Query.Allowance
	shared := &tenants{}
	s.Query.Query.Tenants, s.Uploads.Tenants = shared, shared
	writers = append(writers, func(in *ingest.Stage) { shared.in = in })
	if s.Demo && s.Prometheus.ConfigFile == "" {
		s.Prometheus.Config = s.demoConfig
	}
	if s.Prometheus.Enabled() {
		s.Prometheus.Queue.Patience += max(s.Ingest.FlushInterval, ingest.RemoteFlushInterval)
		s.Prometheus.ExternalURL, s.Prometheus.Limits, s.Prometheus.Templates = s.Process.Site.ExternalURL, s.Ruler.Limits, s.Ruler.Templates
		s.Prometheus.Templates.Queries = s.Query.API.Expressions
		monitor = promapp.New(s.Prometheus)
		s.Query.API.Monitoring = monitor
		s.Query.API.GlobalURLs = s.Prometheus.GlobalURLs(s.Process.Listen)
		writers = append(writers, func(in *ingest.Stage) { monitor.WriteTo(in) })
		readers = append(readers, func(q *query.Stage) { monitor.ReadFrom(q) })
	}
	if s.Ruler.Enabled {
		s.Query.API.Ruler, s.Query.API.Application = true, s.Ruler.Application
	}
	var lines *Listeners
	if s.Listeners.Enabled() {
		lines = NewListeners(s.Listeners, s.Ingest.Lines)
		writers = append(writers, func(in *ingest.Stage) { lines.WriteTo(in) })
	}
	kept := s.Compaction.Kept(s.Prometheus.Configured(), s.Compact.SettleDelay)
	s.Query.Recent = kept
	s.Query.Warm, s.Query.KeepUsage = true, true // the process stays
	all := []process.Builder{
		ingestapp.New(kept, s.Ingest, writers...),
		queryapp.New(s.Query, readers...),
		pageapp.New(s.Page),
		doctorapp.New(s.Doctor),
		tenantapp.New(s.Tenants),
		ruleapp.Editing(s.Ruler, s.Query.API.Expressions, func() {
			if monitor != nil {
				monitor.RulesChanged()
			}
		}),
	}
	// Imports work with the settings of the compaction of this store.
	im := settings.Default[importapp.Settings]()
	im.TempDir, im.Rollups, im.WindowDelay = s.Compact.TempDir, s.Compact.Rollups, s.Compact.WindowDelay
	im.Retention, im.TenantRetention = s.Compact.Retention, s.Compact.TenantRetention
	all = append(all, uploadapp.New(s.Uploads, im))
	if s.Compaction.Enabled {
		all = append(all, compactapp.Background(kept, s.Compact, s.Prometheus.Configured(), s.Compaction.Interval))
	}
	if s.Publish.Enabled {
		all = append(all, compactapp.Publish(s.Publish, s.Process.Store, s.Compact.DeletionDelay))
	}
	if monitor != nil {
		// Its last samples are still stored, because it ends before the stages that it uses.
		all = append(all, monitor.Build)
	}
	if lines != nil {
		all = append(all, lines.Build) // ends before the stage that it writes to
	}
	if s.Flight.Listen != "" {
		all = append(all, NewFlight(s.Flight).Build)
	}
	if s.Demo || s.offersDemo() {
		all = append(all, demonstrate(s, monitor, out))
	}
	return all
}

// tenants is the runtime configuration of the ingest stage, for queries and uploads.
type tenants struct{ in *ingest.Stage }

// Replicas implements query.Tenants.
func (t *tenants) Replicas(ctx context.Context) replica.Rule { return t.in.Tenants().Replicas(ctx) }

// Queries implements query.Tenants.
func (t *tenants) Queries(ctx context.Context) auth.Allowance { return t.in.Tenants().Queries(ctx) }

// PendingUploads implements uploadapp.Tenants.
func (t *tenants) PendingUploads(ctx context.Context, tenant string) int {
	return t.in.Tenants().Current(ctx).Of(tenant).PendingUploads
}
