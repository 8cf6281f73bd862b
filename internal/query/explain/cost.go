package explain

import (
	"context"
	"slices"
	"sync"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/cost"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// Cost is what reads request from the store.
type Cost struct {
	Lists   int     `json:"lists"`
	Gets    int     `json:"gets"`
	Bytes   int64   `json:"bytes"`   // of the row groups and segments that are read, cached or not
	Dollars float64 `json:"dollars"` // for the requests
}

// prices are those of us-east-1. Transfer within the region is free.
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

// usage is what reads take from the store, each object and each range once.
type usage struct {
	parts    source.Fetch
	segments map[string]int64 // sizes by key
}

func newUsage() *usage { return &usage{segments: map[string]int64{}} }

func (u *usage) add(r *exec.Input) {
	u.parts.Add(r.Files)
	u.parts.Add(r.Rollups)
	for i, members := range r.Whole.Rows {
		if o := &r.Res.Objects[i]; !o.IsBlock() && len(members) > 0 {
			u.segments[o.Series] = o.Size
		}
	}
}

// cost is what has to be fetched now. Segments were fetched to look up series.
func (u *usage) cost() Cost {
	c := Cost{Bytes: u.parts.Bytes()}
	c.Gets, _ = u.parts.Cost()
	for _, size := range u.segments {
		c.Bytes += size
	}
	return c
}

// add plans the read of a leaf, and adds what it takes.
func (e *explainer) add(ctx context.Context, l *plan.Leaf, to *usage) (*exec.Input, error) {
	r, err := e.ReadOf(ctx, l)
	if err == nil {
		err = r.Open(ctx)
	}
	if err == nil {
		to.add(r)
	}
	return r, err
}

// explained returns the files that a scan reads.
func (s *leafScan) explained() (out []File) {
	for i := range s.blocks {
		for j := range s.blocks[i].files {
			out = append(out, s.blocks[i].files[j].explained())
		}
	}
	for _, g := range s.segments {
		o := &s.res.Objects[g.object]
		out = append(out, File{Key: o.Series, Bytes: request.Share{Considered: o.Size, Read: o.Size}})
	}
	return out
}

func (f *fileRows) explained() File {
	out := File{Key: f.key}
	for i := range f.file.RowGroups {
		n := block.FloatFiles.Bytes(&f.file.RowGroups[i])
		out.RowGroups.Considered, out.Bytes.Considered = out.RowGroups.Considered+1, out.Bytes.Considered+n
		if slices.Contains(f.groups, i) {
			out.RowGroups.Read, out.Bytes.Read = out.RowGroups.Read+1, out.Bytes.Read+n
		}
	}
	return out
}
