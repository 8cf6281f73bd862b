package explain

import (
	"context"

	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/source"
)

// addInput adds what a read takes.
func addInput(u *source.Usage, r *exec.Input) {
	u.Parts(r.Files)
	u.Parts(r.Rollups)
	for i, members := range r.Whole.Rows {
		if o := &r.Res.Objects[i]; !o.IsBlock() && len(members) > 0 {
			u.Segment(o.Series, o.Size)
		}
	}
}

// add plans the read of a leaf, and adds what it takes.
func (e *explainer) add(ctx context.Context, l *plan.Leaf, to *source.Usage) (*exec.Input, error) {
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
