package importapp

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/store/objstore"
)

// RunInto is Run for a store that is open, without the limit of the process. s.Store is not used.
func RunInto(ctx context.Context, store objstore.Store, s Settings, src Source, now func() time.Time, progress bulk.Progress) (*Outcome, error) {
	o, set, err := prepare(ctx, s, src)
	if err != nil {
		return nil, err
	}
	return o, o.checked(ctx, set, store, now, progress)
}

// Report returns the figures of an import that ran.
func (o *Outcome) Report() bulk.Report { return o.report }

// Bytes returns the least and the most bytes that a dry run promises.
func (o *Outcome) Bytes() (least, most int64) { return o.preview.bytes(o) }

// Inputs returns the blocks as inputs.
func (t TSDB) Inputs(ctx context.Context) ([]bulk.Input, error) {
	f, err := t.find(ctx, "")
	return f.inputs, err
}

// RemoteInputs returns the windows of a server as inputs.
func RemoteInputs(ctx context.Context, r Remote) ([]bulk.Input, error) {
	f, err := r.find(ctx, "")
	return f.inputs, err
}
