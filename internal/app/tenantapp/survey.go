// Package tenantapp lists the tenants of a store and removes one whole.
package tenantapp

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/format/key"
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
