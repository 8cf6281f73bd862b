package rulesapp

import (
	"context"
	"sync"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/rules/ruleeval"
	"github.com/promlake/promlake/internal/store/live"
)

// window is what the rules write in a time, evaluated when it is read first. It implements
// bulk.Opened.
type window struct {
	f        *backfill
	from, to int64 // ms

	once sync.Once
	err  error
	has  []*ruleeval.Memory
}

// whole is what must be evaluated from the beginning, evaluated when it is needed first.
type whole struct {
	once sync.Once
	m    *ruleeval.Memory
	err  error
}

// Scan implements bulk.Opened.
func (w *window) Scan(ctx context.Context, from, to int64, keep bulk.Keep) (bulk.Rows, error) {
	w.once.Do(func() { // if ctx ends, all that would read the window ends
		whole := &w.f.whole
		whole.once.Do(func() { whole.m, whole.err = w.f.e.Whole(ctx) })
		var own *ruleeval.Memory
		if w.err = whole.err; w.err == nil {
			own, w.err = w.f.e.Window(ctx, whole.m, w.from, w.to)
		}
		w.has = []*ruleeval.Memory{own}
		if whole.m != nil {
			w.has = append(w.has, whole.m)
		}
	})
	if w.err != nil {
		return nil, w.err
	}
	out := &rows{}
	var lset []series.Label
	for _, m := range w.has {
		err := m.Each(max(from, w.from), min(to, w.to), func(ls labels.Labels, samples []ruleeval.Sample) error {
			lset = lset[:0]
			ls.Range(func(l labels.Label) { lset = append(lset, series.Label{Name: l.Name, Value: l.Value}) })
			ref, ok, err := keep(lset, rowBytes)
			if ok {
				out.all = append(out.all, row{ref, samples})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Close implements bulk.Opened.
func (w *window) Close() error {
	w.has = nil
	return nil
}

// rowBytes is the memory of a row, about.
const rowBytes = 64

// rows implements bulk.Rows.
type rows struct{ all []row }

type row struct {
	ref     series.Ref
	samples []ruleeval.Sample
}

// Len implements bulk.Rows.
func (r *rows) Len() int { return len(r.all) }

// Ref implements bulk.Rows.
func (r *rows) Ref(i int) series.Ref { return r.all[i].ref }

// Read implements bulk.Rows.
func (r *rows) Read(i int, floats *live.Run, hists []segment.Hist) ([]segment.Hist, error) {
	for _, s := range r.all[i].samples {
		if s.H != nil {
			hists = append(hists, segment.Hist{T: s.T, FH: s.H})
			continue
		}
		floats.TS, floats.V = append(floats.TS, s.T), append(floats.V, s.V)
	}
	return hists, nil
}
