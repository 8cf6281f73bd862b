package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/compact/publish"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// PublishSettings are those of the stage that keeps Iceberg tables.
type PublishSettings struct {
	Enabled  bool          `name:"publish.iceberg" basic:"" default:"false" help:"Keep Iceberg tables over the blocks of all tenants, for other engines." when:"Set it in one process if Spark, Trino, DuckDB or others read the store."`
	Interval time.Duration `name:"publish.interval" default:"1m" above:"0" help:"Time from the end of one publication of Iceberg tables to the start of the next. Must be below --compactor.deletion-delay." when:"Raise it to pay for fewer GET requests."`
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

// NewPublishing returns the builder of the stage over the store of a URL.
func NewPublishing(s PublishSettings, store string) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		locate, err := Locate(s.Location, store)
		if err != nil {
			return nil, err
		}
		publisher := publish.New(p.Store, publish.Settings{Location: locate})
		seen := map[string]uint64{} // by tenant: the generation that its tables show
		results := telemetry.Metrics{Registerer: p.Registry, Prefix: "promlake_"}.Counters("publish_total", "Publications of a tenant's Iceberg tables after its blocks had changed, by result.", "result")
		ended := func(ctx context.Context, tenant string, err error) {
			switch {
			case err == nil:
				results.WithLabelValues("ok").Inc()
			case ctx.Err() == nil:
				results.WithLabelValues("error").Inc()
				p.Logger.ErrorContext(ctx, "publication failed", "tenant", tenant, "error", err)
			}
		}
		// At the end the publication under way is cancelled, which leaves the tables in their former
		// or their new state.
		return process.InBackground(p, "publication", func(ctx context.Context) {
			process.Repeat(ctx, s.Interval, func() {
				// Publish the tenants whose manifest has changed. A failure is counted and logged,
				// and the tenant's turn comes again.
				tenants, err := catalog.Tenants(ctx, p.Store)
				if err != nil {
					ended(ctx, "", err)
					return
				}
				for _, t := range tenants {
					m, _, err := catalog.ReadManifest(ctx, p.Store, t)
					if err == nil && m.Generation == seen[t] {
						continue
					}
					if err == nil {
						var r publish.Report
						if r, err = publisher.Publish(ctx, t); err == nil {
							seen[t] = r.Generation
						}
					}
					ended(ctx, t, err)
				}
			})
		}), nil
	}
}
