// Package compacttest writes segments for tests and reads a lake as any reader may: the live
// objects of a snapshot, by rank, without what is deleted. It shares no code with the merges that
// tests compare with it.
package compacttest

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/objstore"
)

// Encode returns the segment of the rows, which may be in any order but have distinct labels.
func Encode(rows []segment.Row, metadata ...segment.Metadata) ([]byte, error) {
	b, err := Batch(series.NewTable(1), rows, metadata...)
	if err != nil {
		return nil, err
	}
	w, err := segment.NewWriter()
	if err != nil {
		return nil, err
	}
	data, _, err := w.Write(b, nil)
	return data, err
}

// Batch returns the rows, which may be in any order but have distinct labels, as a batch whose label
// sets are in t.
func Batch(t *series.Table, rows []segment.Row, metadata ...segment.Metadata) (*segment.Batch, error) {
	byRef := map[series.Ref]*segment.Row{}
	b := &segment.Batch{Metadata: metadata}
	for i := range rows {
		ref, err := t.Intern(pairs(rows[i].Labels))
		if err != nil {
			return nil, err
		}
		byRef[ref] = &rows[i]
		b.Rows = append(b.Rows, ref)
	}
	view := t.View()
	b.View = &view
	slices.SortFunc(b.Rows, view.Compare)
	for i, ref := range b.Rows {
		appendRow(b, i, byRef[ref])
	}
	return b, nil
}

func appendRow(b *segment.Batch, i int, r *segment.Row) {
	for _, f := range r.Floats {
		if f.ST != 0 && b.ST == nil {
			b.ST = make([]int64, len(b.TS))
		}
		b.TS, b.V = append(b.TS, f.T), append(b.V, f.V)
		if b.ST != nil {
			b.ST = append(b.ST, f.ST)
		}
	}
	b.End = append(b.End, len(b.TS))
	if len(r.Hists) > 0 {
		b.Hists = append(b.Hists, segment.RowHists{Row: i, Samples: r.Hists})
	}
	if len(r.Exemplars) > 0 {
		b.Exemplars = append(b.Exemplars, segment.RowExemplars{Row: i, Exemplars: r.Exemplars})
	}
}

func pairs(ls labels.Labels) []series.Label {
	var out []series.Label
	ls.Range(func(l labels.Label) { out = append(out, series.Label{Name: l.Name, Value: l.Value}) })
	return out
}

// Put writes a segment for the window of w into the store.
func Put(ctx context.Context, store objstore.Store, tenant string, w key.Window, id ulid.ULID, rows []segment.Row, metadata ...segment.Metadata) error {
	data, err := Encode(rows, metadata...)
	if err != nil {
		return fmt.Errorf("encode segment: %w", err)
	}
	k := key.Segment{Tenant: tenant, Window: w, ID: id}.String()
	_, err = store.Put(ctx, k, bytes.NewReader(data), objstore.Condition{IfAbsent: true})
	return err
}
