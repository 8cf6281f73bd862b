package compactapp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/compact/publish"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// PublishSettings are those of the stage that keeps Iceberg tables.
type PublishSettings struct {
	Enabled  bool          `name:"publish.iceberg" basic:"" default:"false" help:"Keep Iceberg tables over the blocks of all tenants, for other engines." when:"Set it in one process if Spark, Trino, DuckDB or others read the store."`
	Interval time.Duration `name:"publish.interval" default:"1m" above:"0" help:"Time from the end of one publication of Iceberg tables to the start of the next. Must be below --compactor.deletion-delay. A function publishes when its schedule runs it." when:"Raise it to pay for fewer GET requests."`
	Location string        `name:"publish.location" placeholder:"URI" help:"Where other engines find the store, such as s3a://bucket/prefix. Default: the URL of --store without parameters." when:"Set it if engines reach the store by another URI."`
}

// Locate returns the function that gives the URI of a key below location, or below the store's URL
// if location is "".
func Locate(location, store string) (func(key string) string, error) {
	if location == "" {
		var err error
		if location, err = storeurl.Location(store); err != nil {
			return nil, err
		}
	} else if !strings.Contains(location, "://") {
		return nil, fmt.Errorf("publish: location: want a URI such as s3a://bucket/prefix, got %q", location)
	}
	location = strings.TrimRight(location, "/") + "/"
	return func(key string) string { return location + key }, nil
}

// Check reports an interval in which files of published tables may be deleted before the next
// publication. deletion is the delay after which compaction deletes replaced objects.
func (s PublishSettings) Check(deletion time.Duration) error {
	if s.Enabled && s.Interval >= deletion {
		return fmt.Errorf("publish.interval: want less than compactor.deletion-delay (%s), after which files of published tables are deleted, got %s", deletion, s.Interval)
	}
	return nil
}

// Publish returns the builder of the stage that keeps Iceberg tables over the blocks of a store,
// whose URL is store. It publishes in the background, or in a function at each schedule. It keeps
// replaced metadata for the duration deletion at least, as compaction keeps replaced objects.
func Publish(s PublishSettings, store string, deletion time.Duration) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		if err := s.Check(deletion); err != nil {
			return nil, err
		}
		locate, err := Locate(s.Location, store)
		if err != nil {
			return nil, err
		}
		a := &publishing{
			publisher: publish.New(p.Store, publish.Settings{Location: locate, Keep: deletion}),
			store:     p.Store, log: p.Logger, seen: map[string]uint64{},
			results: telemetry.Metrics{Registerer: p.Registry, Prefix: "promlake_"}.Counters("publish_total", "Publications of a tenant's Iceberg tables after its blocks had changed, by result.", "result"),
		}
		if lambda.Running() {
			return scheduled{publishing: a}, nil
		}
		// At the end the publication under way is cancelled, which leaves the tables in their former
		// or their new state.
		return process.InBackground(p, "publication", func(ctx context.Context) {
			process.Repeat(ctx, s.Interval, func() { _ = a.publish(ctx) })
		}), nil
	}
}

// scheduled publishes at each tick. It implements process.Scheduled.
type scheduled struct {
	process.Idle
	*publishing
}

// Tick implements process.Scheduled.
func (s scheduled) Tick(ctx context.Context, _ time.Time) error { return s.publish(ctx) }

// publishing publishes the tables of all tenants. One call runs at a time.
type publishing struct {
	publisher *publish.Publisher
	store     objstore.Store
	log       *slog.Logger
	seen      map[string]uint64 // by tenant: the generation that its tables show
	results   *prometheus.CounterVec
}

// publish publishes the tenants whose manifest has changed, in a random order, so that each gets
// its turn if there is not enough time for all. It counts and logs failures, and publishes the
// others.
func (a *publishing) publish(ctx context.Context) error {
	tenants, err := catalog.Tenants(ctx, a.store)
	if err != nil {
		return a.ended(ctx, "", err)
	}
	rand.Shuffle(len(tenants), func(i, j int) { tenants[i], tenants[j] = tenants[j], tenants[i] })
	var errs []error
	for _, t := range tenants {
		m, _, err := catalog.ReadManifest(ctx, a.store, t)
		if err == nil && m.Generation == a.seen[t] {
			continue
		}
		if err == nil {
			var r publish.Report
			if r, err = a.publisher.Publish(ctx, t); err == nil {
				a.seen[t] = r.Generation
			}
		}
		errs = append(errs, a.ended(ctx, t, err))
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// ended counts and logs the end of a publication, and returns its error.
func (a *publishing) ended(ctx context.Context, tenant string, err error) error {
	switch {
	case err == nil:
		a.results.WithLabelValues("ok").Inc()
	case !errors.Is(ctx.Err(), context.Canceled):
		a.results.WithLabelValues("error").Inc()
		a.log.ErrorContext(ctx, "publication failed", "tenant", tenant, "error", err)
	}
	return err
}
