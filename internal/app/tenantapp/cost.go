package tenantapp

import (
	"math"

	"github.com/promlake/promlake/internal/aws/cost"
)

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
