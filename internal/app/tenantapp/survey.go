// Package tenantapp lists the tenants of a store and removes one whole.
package tenantapp

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/inventory"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Pile is a number of objects.
type Pile struct{ Objects, Bytes int64 }

func (p *Pile) add(bytes int64) { p.Objects, p.Bytes = p.Objects+1, p.Bytes+bytes }

// Survey is everything that a store has of a tenant.
type Survey struct {
	Tenant   string
	Segments Pile
	Blocks   Pile      // files of blocks
	History  Pile      // copies of earlier manifests
	Manifest Pile      // one object, or none
	Other    Pile      // the tenant's rules and their states, records of imports, uploads, and keys that the grammar does not derive
	Newest   time.Time // segment, by the store's clock; zero if there is none

	segments []catalog.SegmentID
	data     []string // keys of segments, blocks and others
	history  []string // keys
}

// Total is the sum of all piles.
func (s *Survey) Total() (sum Pile) {
	for _, p := range []Pile{s.Segments, s.Blocks, s.History, s.Manifest, s.Other} {
		sum.Objects, sum.Bytes = sum.Objects+p.Objects, sum.Bytes+p.Bytes
	}
	return sum
}

// Look lists everything of a tenant.
func Look(ctx context.Context, store objstore.Lister, tenant string) (*Survey, error) {
	s := &Survey{Tenant: tenant}
	rules := key.Rules(tenant)
	for _, prefix := range []string{key.TenantPrefix(tenant), rules, key.RuleStatesOf(tenant)} {
		for obj, err := range store.List(ctx, prefix, "") {
			if err != nil {
				return nil, fmt.Errorf("list tenant %s: %w", tenant, err)
			}
			if prefix != rules || obj.Key == rules {
				s.add(obj)
			}
		}
	}
	return s, nil
}

func (s *Survey) add(obj objstore.Object) {
	if obj.Key == key.Manifest(s.Tenant) {
		s.Manifest.add(obj.Size)
		return
	}
	if _, _, err := key.ParseManifestCopy(obj.Key); err == nil {
		s.History.add(obj.Size)
		s.history = append(s.history, obj.Key)
		return
	}
	s.data = append(s.data, obj.Key)
	if seg, err := key.ParseSegment(obj.Key); err == nil {
		s.Segments.add(obj.Size)
		s.segments = append(s.segments, catalog.SegmentIDOf(seg))
		if obj.Modified.After(s.Newest) {
			s.Newest = obj.Modified
		}
		return
	}
	if _, _, err := key.ParseBlockFile(obj.Key); err == nil {
		s.Blocks.add(obj.Size)
		return
	}
	s.Other.add(obj.Size)
}

// Cost is what removing a tenant costs in a bucket of Amazon S3, and what it saves.
type Cost struct {
	Lists, Puts, Gets, Deletes int64   // requests
	Dollars                    float64 // for all requests. Deletions cost nothing
	Monthly                    float64 // dollars a month of storage that end
}

const (
	listed = 1000 // objects that one request lists
	bytes  = 1 << 30
)

// Price returns what Delete costs at a region's prices: a listing of everything before the dry run,
// before the deletion and after it, one of its rules and one of their states each time, a commit,
// which reads and lists manifests and puts two, the store's time four times, and one deletion for
// each object.
func (s *Survey) Price(p *cost.Prices) Cost {
	t := s.Total()
	pages := int64(math.Ceil(float64(t.Objects) / listed))
	c := Cost{Lists: 2*max(pages, 1) + 9, Puts: 2, Gets: 6, Deletes: t.Objects}
	put, get, storage := p.Price(cost.S3Put), p.Price(cost.S3Get), p.Price(cost.S3Storage)
	c.Dollars = put.Dollars(float64(c.Lists+c.Puts)) + get.Dollars(float64(c.Gets))
	c.Monthly = storage.Dollars(float64(t.Bytes) / bytes)
	return c
}

// Stored is what a tenant stores. Bytes, samples and times are those of live objects; the times are
// in ms since the Unix epoch, and 0 if there are none.
type Stored struct {
	Tenant    string `json:"tenant"`
	Segments  int    `json:"segments"`
	Blocks    int    `json:"blocks"`
	Bytes     int64  `json:"bytes"`
	Samples   int64  `json:"samples"`   // of blocks
	Start     int64  `json:"start"`     // of the first window
	End       int64  `json:"end"`       // of the last window, exclusive
	Waiting   int    `json:"waiting"`   // objects that wait to be deleted
	Deletions int    `json:"deletions"` // that are not yet applied everywhere
	// DollarsPerMonth is the list price of S3 Standard in us-east-1 for Bytes.
	DollarsPerMonth float64 `json:"dollarsPerMonth"`
	Error           string  `json:"error,omitempty"` // why the rest is unknown
}

// overviewers is the number of tenants that are read at once.
const overviewers = 8

// overview describes tenants of a store, the one with most bytes first. It lists the segments and
// reads the manifest of each. A manifest that cannot be read is part of the result.
func overview(ctx context.Context, store objstore.Store, tenants []string) ([]Stored, error) {
	out := make([]Stored, len(tenants))
	err := telemetry.Each(ctx, overviewers, tenants, func(ctx context.Context, i int, name string) error {
		out[i] = storedBy(ctx, store, name)
		return ctx.Err()
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b Stored) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return out, nil
}

func storedBy(ctx context.Context, store objstore.Store, tenant string) Stored {
	s, err := catalog.Take(ctx, store, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return Stored{Tenant: tenant, Error: err.Error()}
	}
	v := inventory.Of(s)
	out := Stored{
		Tenant: tenant, Segments: len(s.Segments), Blocks: len(s.Blocks), Bytes: v.Bytes,
		Waiting: v.Waiting.Segments + v.Waiting.Blocks, DollarsPerMonth: v.DollarsPerMonth,
	}
	for _, l := range v.Levels {
		out.Samples += l.Samples
	}
	for i, w := range v.Windows { // by start
		if i == 0 {
			out.Start = w.Start
		}
		out.End = max(out.End, w.End)
	}
	for _, d := range v.Deletions {
		if d.Objects > 0 {
			out.Deletions++
		}
	}
	return out
}

// Path is where a server describes the tenants of its store.
const Path = "/api/v1/status/tenants"

// Served are the settings of the route. The tags are those of package settings.
type Served struct {
	MaxTenants int `name:"web.max-tenants" default:"1000" min:"1" help:"Tenants that one request for /api/v1/status/tenants may describe; each takes two requests to the store." when:"Raise it if the page cannot list the tenants and the requests are worth it."`
}

// New returns the builder of a stage that answers GET Path, to operators because the answer
// concerns all tenants, with what the store has of each:
//
//	200   the tenants
//	400   there are more of them than the settings allow
//	409   another such request is running
//	503   the store does not answer
//
// A request ends when its client goes away. The stage counts in the process's registry:
//
//	promlake_tenants_requests_total{result}   ok, limit, busy, failed
func New(s Served) process.Builder {
	return func(_ context.Context, p process.Parts) (process.Stage, error) {
		results := telemetry.Metrics{Registerer: p.Registry, Prefix: "promlake_"}.Counters("tenants_requests_total", "Requests to describe all tenants by result: ok, limit (more tenants than --web.max-tenants), busy (another one ran) and failed (the store did not answer).", "result")
		return process.NewExclusive(Path, "another request reads the tenants: try again when it is over", results, func(r *http.Request) (any, string, error) {
			tenants, err := catalog.Tenants(r.Context(), p.Store)
			if err != nil {
				return nil, "", err
			}
			if len(tenants) > s.MaxTenants {
				return nil, "limit", fmt.Errorf("the store has %d tenants, and one request may describe %d (--web.max-tenants)", len(tenants), s.MaxTenants)
			}
			all, err := overview(r.Context(), p.Store, tenants)
			if err != nil {
				return nil, "", err
			}
			return data{all}, "ok", nil
		}), nil
	}
}

type data struct {
	Tenants []Stored `json:"tenants"`
}
