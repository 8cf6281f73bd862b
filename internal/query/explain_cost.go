package query

import (
	"context"
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/cost"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// Cost is what reads take from the store.
type Cost struct {
	Lists   int     `json:"lists"`
	Gets    int     `json:"gets"`
	Bytes   int64   `json:"bytes"`   // of the row groups and segments that are read, cached or not
	Dollars float64 `json:"dollars"` // for the requests
}

// prices are those of us-east-1. Bytes that stay in the region are free.
var prices = sync.OnceValue(func() *cost.Prices {
	p, err := cost.ReadPrices(cost.DefaultRegion)
	if err != nil {
		panic(err) // they are part of the program
	}
	return p
})

func (c *Cost) add(o Cost) {
	c.Lists, c.Gets, c.Bytes = c.Lists+o.Lists, c.Gets+o.Gets, c.Bytes+o.Bytes
	list, get := prices().Price(cost.S3Put), prices().Price(cost.S3Get)
	c.Dollars = list.Dollars(float64(c.Lists)) + get.Dollars(float64(c.Gets))
}

// taking is what reads take from the store, each object and each part of one once.
type taking struct {
	parts    source.Fetch
	segments map[string]int64 // sizes by key
}

func newTaking() *taking { return &taking{segments: map[string]int64{}} }

func (t *taking) add(r *sampleRead) {
	t.parts.Add(r.files)
	t.parts.Add(r.rollups)
	for i, members := range r.whole.Rows {
		if o := &r.res.Objects[i]; !o.IsBlock() && len(members) > 0 {
			t.segments[o.Series] = o.Size
		}
	}
}

// cost is what is to be fetched now. Segments were fetched to look up series.
func (t *taking) cost() Cost {
	c := Cost{Bytes: t.parts.Bytes()}
	c.Gets, _ = t.parts.Cost()
	for _, size := range t.segments {
		c.Bytes += size
	}
	return c
}

// take adds what a leaf reads.
func (e *explainer) take(ctx context.Context, l *plan.Leaf, to *taking) (*sampleRead, error) {
	r, err := e.readOf(ctx, l)
	if err == nil {
		err = r.open(ctx)
	}
	if err == nil {
		to.add(r)
	}
	return r, err
}

// explained says which files a scan reads.
func (s *leafScan) explained() (out []ExplainedFile) {
	for i := range s.blocks {
		for j := range s.blocks[i].files {
			out = append(out, s.blocks[i].files[j].explained())
		}
	}
	for _, g := range s.segments {
		o := &s.res.Objects[g.object]
		out = append(out, ExplainedFile{Key: o.Series, Bytes: request.Share{Considered: o.Size, Read: o.Size}})
	}
	return out
}

func (f *fileRows) explained() ExplainedFile {
	out := ExplainedFile{Key: f.key}
	for i := range f.file.RowGroups {
		n := block.FloatFiles.Bytes(&f.file.RowGroups[i])
		out.RowGroups.Considered, out.Bytes.Considered = out.RowGroups.Considered+1, out.Bytes.Considered+n
		if slices.Contains(f.groups, i) {
			out.RowGroups.Read, out.Bytes.Read = out.RowGroups.Read+1, out.Bytes.Read+n
		}
	}
	return out
}
