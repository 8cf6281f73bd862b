package explain

import (
	"context"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/price"
	"github.com/promlake/promlake/internal/query/request"
)

// addInput adds what a read takes.
func addInput(u *price.Usage, r *exec.Input) {
	u.Parts(r.Files)
	u.Parts(r.Rollups)
	for i, members := range r.Whole.Rows {
		if o := &r.Res.Objects[i]; !o.IsBlock() && len(members) > 0 {
			u.Segment(o.Series, o.Size)
		}
	}
}

// add plans the read of a leaf, and adds what it takes.
func (e *explainer) add(ctx context.Context, l *plan.Leaf, to *price.Usage) (*exec.Input, error) {
	r, err := e.ReadOf(ctx, l)
	if err == nil {
		r.PlanFiles(ctx)
		err = r.Open(ctx)
	}
	if err == nil {
		addInput(to, r)
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
	out.RowGroups.Considered, out.RowGroups.Read, out.Bytes.Read = int64(len(f.file.RowGroups)), int64(len(f.groups)), f.bytes
	for i := range f.file.RowGroups {
		out.Bytes.Considered += block.FloatFiles.Bytes(&f.file.RowGroups[i])
	}
	return out
}
