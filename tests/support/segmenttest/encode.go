package segmenttest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
)

// Encode encodes rows as a segment. The rows may be in any order; their label sets must differ.
func Encode(rows []segment.Row, meta []segment.Metadata) ([]byte, segment.Info, error) {
	w, err := segment.NewWriter()
	if err != nil {
		return nil, segment.Info{}, err
	}
	return EncodeWith(w, rows, meta)
}

// EncodeWith is Encode with a writer that may have been used before.
func EncodeWith(w *segment.Writer, rows []segment.Row, meta []segment.Metadata) ([]byte, segment.Info, error) {
	b, err := Batch(rows, meta)
	if err != nil {
		return nil, segment.Info{}, err
	}
	out, info, err := w.Write(b, nil)
	return bytes.Clone(out), info, err
}

// Batch converts rows to a batch for a segment.Writer.
func Batch(rows []segment.Row, meta []segment.Metadata) (*segment.Batch, error) {
	return BatchIn(series.NewTable(0), rows, meta)
}

// BatchIn is Batch with the label sets in a table that may have others.
func BatchIn(t *series.Table, rows []segment.Row, meta []segment.Metadata) (*segment.Batch, error) {
	refs, byRef := make([]series.Ref, len(rows)), make(map[series.Ref]*segment.Row, len(rows))
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
		if byRef[ref] != nil {
			return nil, fmt.Errorf("encode segment: two rows for series %s", r.Labels)
		}
		refs[i], byRef[ref] = ref, &rows[i]
	}
	view := t.View()
	slices.SortFunc(refs, view.Compare)
	b := segment.Batch{View: &view, Rows: refs, Metadata: slices.Clone(meta)}
	slices.SortStableFunc(b.Metadata, func(a, b segment.Metadata) int { return strings.Compare(a.Metric, b.Metric) })
	for i, ref := range refs {
		addRow(&b, i, byRef[ref])
	}
	if !slices.ContainsFunc(b.ST, func(st int64) bool { return st != 0 }) {
		b.ST = nil
	}
	return &b, nil
}

func addRow(b *segment.Batch, i int, r *segment.Row) {
	for _, f := range r.Floats {
		b.TS, b.V, b.ST = append(b.TS, f.T), append(b.V, f.V), append(b.ST, f.ST)
	}
	b.End = append(b.End, len(b.TS))
	if len(r.Hists) > 0 {
		b.Hists = append(b.Hists, segment.RowHists{Row: i, Samples: r.Hists})
	}
	if len(r.Exemplars) > 0 {
		b.Exemplars = append(b.Exemplars, segment.RowExemplars{Row: i, Exemplars: r.Exemplars})
	}
}
