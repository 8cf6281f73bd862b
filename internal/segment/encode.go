package segment

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/series"
)

// Encode returns the segment that holds rows, which may come in any order; their label sets must differ.
// It is the convenient way for few rows; ingest drives a Writer.
func Encode(rows []Row, meta []Metadata) ([]byte, Info, error) {
	w, err := NewWriter()
	if err != nil {
		return nil, Info{}, err
	}
	return encode(w, rows, meta)
}

func encode(w *Writer, rows []Row, meta []Metadata) ([]byte, Info, error) {
	b, err := newBatch(rows, meta)
	if err != nil {
		return nil, Info{}, err
	}
	out, info, err := w.Write(b)
	return bytes.Clone(out), info, err
}

// newBatch puts rows into the form that a Writer takes.
func newBatch(rows []Row, meta []Metadata) (*Batch, error) {
	t := series.NewTable(0)
	refs := make([]series.Ref, len(rows))
	var lset []series.Label
	for i, r := range rows {
		lset = lset[:0]
		r.Labels.Range(func(l labels.Label) {
			if l.Value != "" {
				lset = append(lset, series.Label{Name: l.Name, Value: l.Value})
			}
		})
		ref, err := t.Intern(lset)
		if err != nil {
			return nil, fmt.Errorf("encode segment: %w", err)
		}
		if int(ref) != i {
			return nil, fmt.Errorf("encode segment: two rows for series %s", r.Labels)
		}
		refs[i] = ref
	}
	view := t.View()
	slices.SortFunc(refs, view.Compare)
	b := Batch{View: &view, Rows: refs, Metadata: slices.Clone(meta)}
	slices.SortStableFunc(b.Metadata, func(a, b Metadata) int { return strings.Compare(a.Metric, b.Metric) })
	for i, ref := range refs {
		b.addRow(i, &rows[ref])
	}
	if !slices.ContainsFunc(b.ST, func(st int64) bool { return st != 0 }) {
		b.ST = nil
	}
	return &b, nil
}

func (b *Batch) addRow(i int, r *Row) {
	for _, f := range r.Floats {
		b.TS, b.V, b.ST = append(b.TS, f.T), append(b.V, f.V), append(b.ST, f.ST)
	}
	b.End = append(b.End, len(b.TS))
	if len(r.Hists) > 0 {
		b.Hists = append(b.Hists, RowHists{i, r.Hists})
	}
	if len(r.Exemplars) > 0 {
		b.Exemplars = append(b.Exemplars, RowExemplars{i, r.Exemplars})
	}
}
