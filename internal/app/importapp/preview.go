package importapp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// The bytes that blocks of the store take, with their rollups, lie between a twentieth of those of
// a TSDB's blocks, for values that do not change, and all of them. Where these are not known, they
// lie between leastPerSample, and mostPerSample with mostPerSeries for each series and window. Each
// block has up to blockBytes besides.
const (
	leastOfTSDB    = 20
	leastPerSample = 0.03
	mostPerSample  = 10
	mostPerSeries  = 300
	blockBytes     = 32 << 10
)

const gib = 1 << 30

// preview is what a dry run finds out.
type preview struct {
	series   int64 // of all units
	windows  int   // of the units
	occupied int   // windows of units in which the tenant has live objects
	segments int   // in these windows
	samples  int64 // of the blocks in these windows
}

// look previews an import.
func look(ctx context.Context, o *Outcome) (p *preview, err error) {
	p = &preview{}
	if p.series, err = o.found.series(ctx, &o.plan); err != nil {
		return nil, err
	}
	for i, u := range o.plan.Units {
		if i == 0 || u.Window != o.plan.Units[i-1].Window {
			p.windows++
		}
	}
	return p, nil
}

// countSeries counts the series of a plan's inputs by reading them.
func countSeries(ctx context.Context, plan *bulk.Plan) (int64, error) {
	used := map[int]bool{}
	for _, u := range plan.Units {
		for _, i := range u.Inputs {
			used[i] = true
		}
	}
	ids := map[uint64]struct{}{}
	var buf []byte
	for i := range plan.Inputs {
		if !used[i] {
			continue
		}
		in, err := plan.Inputs[i].Open(ctx)
		if err != nil {
			return 0, err
		}
		_, err = in.Scan(ctx, plan.Inputs[i].MinT, plan.Inputs[i].MaxT+1, func(lset []series.Label, _ int64) (series.Ref, bool, error) {
			var id uint64
			id, buf = series.IDOf(lset, buf)
			ids[id] = struct{}{}
			return 0, false, nil
		})
		if err := errors.Join(err, in.Close()); err != nil {
			return 0, err
		}
	}
	return int64(len(ids)), nil
}

// compare counts what the tenant has in the windows of the plan.
func (p *preview) compare(ctx context.Context, store objstore.Store, tenant string, plan *bulk.Plan) error {
	snap, err := catalog.Take(ctx, store, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return err
	}
	counted := map[catalog.BlockID]bool{}
	for i, u := range plan.Units {
		if i > 0 && u.Window == plan.Units[i-1].Window {
			continue
		}
		from, to, busy := int64(u.Window), u.Level.End(u.Window), false
		for _, s := range snap.Segments {
			if int64(s.Window) < to && s.Window.End() > from {
				p.segments++
				busy = true
			}
		}
		for _, b := range snap.Blocks {
			if b.MinT < to && b.MaxT >= from {
				if !counted[b.BlockID()] {
					p.samples += b.Samples
				}
				counted[b.BlockID()], busy = true, true
			}
		}
		if busy {
			p.occupied++
		}
	}
	return nil
}

// rows adds what the dry run found out.
func (p *preview) rows(t *human.Table, o *Outcome) {
	n := o.plan.Samples()
	least, most := p.bytes(o)
	t.Row("to import: windows", human.Count(int64(p.windows)))
	t.Row("to import: series", human.Count(p.series))
	t.Row("to import: samples", "about "+human.Count(n))
	t.Row("bytes in the store", human.Bytes(least)+" to "+human.Bytes(most))
	PriceRows(t, most, 0)
	conflicts := "none: the tenant has nothing in these windows"
	if p.occupied > 0 {
		conflicts = fmt.Sprintf("%d windows have %s segments and blocks of %s samples; of equal series and times, the tenant's samples stay", p.occupied, human.Count(int64(p.segments)), human.Count(p.samples))
	}
	t.Row("conflicts", conflicts)
}

// bytes returns the least and the most bytes that the import writes to the store.
func (p *preview) bytes(o *Outcome) (least, most int64) {
	n, blocks, all := o.plan.Samples(), int64(len(o.plan.Units)), int64(0)
	if o.found.bytes == 0 {
		return Bytes(n, n, p.series*int64(p.windows), blocks)
	}
	for _, in := range o.found.inputs {
		all += in.Samples
	}
	most = int64(float64(o.found.bytes) * float64(n) / float64(max(all, 1)))
	return most / leastOfTSDB, most + blocks*blockBytes
}

// Bytes returns the least and the most bytes that samples take in the store: series counts those of
// each block.
func Bytes(leastSamples, mostSamples, series, blocks int64) (least, most int64) {
	return int64(float64(leastSamples) * leastPerSample), mostSamples*mostPerSample + series*mostPerSeries + blocks*blockBytes
}

// PriceRows adds what bytes in the store cost a month, and what puts cost, if there are any, in the
// region of the environment.
func PriceRows(t *human.Table, bytes, puts int64) {
	prices, err := cost.ReadPrices(cmp.Or(os.Getenv("AWS_REGION"), cost.DefaultRegion))
	if err != nil {
		t.Row("price", err.Error())
		return
	}
	storage, put := prices.Price(cost.S3Storage), prices.Price(cost.S3Put)
	t.Row("storage", fmt.Sprintf("about $%.4f a month (%s, Amazon S3 Standard)", storage.Dollars(float64(bytes)/gib), prices.Region))
	if puts > 0 {
		t.Row("writing", fmt.Sprintf("about $%.4f", put.Dollars(float64(puts))))
	}
}
