package compacttest

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/compact/blockio"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// Sample is the sample that counts at one timestamp of one series. Hist is the encoded histogram,
// empty for floats.
type Sample struct {
	ST   int64
	Bits uint64 // of the value
	Hist string
}

// Answer is the whole content of a lake.
type Answer struct {
	Samples   map[string]map[int64]Sample // by labels and timestamp
	Exemplars map[string][]string         // by labels: as text, sorted, each once
	Metadata  map[string]segment.Metadata
}

// NewAnswer returns an empty answer.
func NewAnswer() Answer {
	return Answer{map[string]map[int64]Sample{}, map[string][]string{}, map[string]segment.Metadata{}}
}

// Count returns the number of samples.
func (a Answer) Count() (n int) {
	for _, s := range a.Samples {
		n += len(s)
	}
	return n
}

// Matches reports whether the tombstone deletes from the series with these labels. It panics if a
// matcher is invalid; those of a manifest are valid.
func Matches(t catalog.Tombstone, lset labels.Labels) bool {
	ms, err := t.LabelMatchers()
	if err != nil {
		panic(err)
	}
	return !slices.ContainsFunc(ms, func(m *labels.Matcher) bool { return !m.Matches(lset.Get(m.Name)) })
}

// Add adds the rows of the next object by rank, without what the tombstones delete. They replace
// samples of equal times that were added before.
func (a Answer) Add(rows []segment.Row, deletes []catalog.Tombstone) error {
	for _, r := range rows {
		k := r.Labels.String()
		deleted := func(t int64) bool {
			return slices.ContainsFunc(deletes, func(d catalog.Tombstone) bool { return d.Overlaps(t, t) && Matches(d, r.Labels) })
		}
		if err := a.addSamples(k, &r, deleted); err != nil {
			return err
		}
		for _, e := range r.Exemplars {
			if !deleted(e.Ts) {
				a.Exemplars[k] = append(a.Exemplars[k], fmt.Sprintf("%d %x %s", e.Ts, math.Float64bits(e.Value), e.Labels))
			}
		}
		if len(a.Exemplars[k]) > 0 {
			slices.Sort(a.Exemplars[k])
			a.Exemplars[k] = slices.Compact(a.Exemplars[k])
		}
	}
	return nil
}

func (a Answer) addSamples(k string, r *segment.Row, deleted func(int64) bool) error {
	put := func(t int64, s Sample) {
		if deleted(t) {
			return
		}
		if a.Samples[k] == nil {
			a.Samples[k] = map[int64]Sample{}
		}
		a.Samples[k][t] = s
	}
	for _, f := range r.Floats {
		put(f.T, Sample{ST: f.ST, Bits: math.Float64bits(f.V)})
	}
	for _, h := range r.Hists {
		b, err := segment.EncodeHist(h)
		if err != nil {
			return err
		}
		put(h.T, Sample{ST: h.ST, Hist: string(b)})
	}
	return nil
}

// object is a live object.
type object struct {
	rank, through ulid.ULID
	rows          func() ([]segment.Row, []segment.Metadata, error)
}

// Read reads a tenant's whole lake.
func Read(ctx context.Context, store objstore.Store, tenant string) (Answer, error) {
	a := NewAnswer()
	snap, err := catalog.Take(ctx, store, tenant, key.MinTime, key.MaxTime)
	if err != nil {
		return a, err
	}
	for _, o := range objects(ctx, store, &snap) {
		rows, metadata, err := o.rows()
		if err != nil {
			return a, err
		}
		deletes := slices.DeleteFunc(slices.Clone(snap.Tombstones), func(t catalog.Tombstone) bool { return !t.Covers(o.through) })
		if err := a.Add(rows, deletes); err != nil {
			return a, err
		}
		for _, m := range metadata {
			a.Metadata[m.Metric] = m
		}
	}
	return a, nil
}

func objects(ctx context.Context, store objstore.Store, snap *catalog.Snapshot) []object {
	var out []object
	for _, s := range snap.Segments {
		out = append(out, object{rank: s.Rank, through: s.DeletesThrough, rows: func() ([]segment.Row, []segment.Metadata, error) { return readSegment(ctx, store, s.String()) }})
	}
	for _, b := range snap.Blocks {
		out = append(out, object{b.Rank, b.DeletesThrough, func() ([]segment.Row, []segment.Metadata, error) {
			return ReadBlock(blockio.NewReader(ctx, store, b.Key(snap.Tenant), 1<<20))
		}})
	}
	slices.SortStableFunc(out, func(a, b object) int { return a.rank.Compare(b.rank) })
	return out
}

func readSegment(ctx context.Context, store objstore.Store, k string) ([]segment.Row, []segment.Metadata, error) {
	data, obj, err := objstore.ReadAll(ctx, store, k)
	if err != nil {
		return nil, nil, err
	}
	info, err := segment.ReadInfo(bytes.NewReader(data), obj.Size)
	if err != nil {
		return nil, nil, err
	}
	rows, err := segmenttest.Rows(data)
	return rows, info.Metadata, err
}

// ReadBlock returns the rows of a block in its order, and its metadata.
func ReadBlock(src block.Source) ([]segment.Row, []segment.Metadata, error) {
	r, err := block.Open(src)
	if err != nil {
		return nil, nil, err
	}
	t := series.NewTable(7)
	rows, err := r.Series(t, nil)
	if err != nil {
		return nil, nil, err
	}
	view := t.View()
	c := cursors{r.Floats(), r.Hists(), r.Exemplars()}
	var out []segment.Row
	for _, b := range rows {
		row, err := c.row(&b)
		if err != nil {
			return nil, nil, err
		}
		row.Labels = labelsOf(&view, b.Ref)
		out = append(out, row)
	}
	metadata, err := r.Metadata()
	return out, metadata, err
}

type cursors struct {
	floats    *block.FloatCursor
	hists     *block.HistCursor
	exemplars *block.ExemplarCursor
}

func (c *cursors) row(b *block.Row) (row segment.Row, err error) {
	if b.Floats > 0 {
		var run block.FloatRun
		if err = c.floats.Next(b.Floats, &run); err != nil {
			return row, err
		}
		for i, t := range run.TS {
			f := segment.Float{T: t, V: run.V[i]}
			if run.ST != nil {
				f.ST = run.ST[i]
			}
			row.Floats = append(row.Floats, f)
		}
	}
	if b.Hists > 0 {
		if row.Hists, err = c.hists.Next(b.Hists, nil); err != nil {
			return row, err
		}
	}
	if b.Exemplars > 0 {
		row.Exemplars, err = c.exemplars.Next(b.Exemplars, nil)
	}
	return row, err
}

func labelsOf(v *series.View, r series.Ref) labels.Labels {
	b := labels.NewBuilder(labels.EmptyLabels())
	b.Set(model.MetricNameLabel, v.Metrics[v.Metric(r)])
	for _, p := range v.Pairs(r) {
		b.Set(v.Names[p.Name], v.Values[p.Name][p.Value])
	}
	return b.Labels()
}
