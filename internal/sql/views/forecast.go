package views

import (
	"context"

	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/source"
)

// Forecast is what a scan will read of the objects that hold its series.
type Forecast struct {
	Series, Segments, Blocks int
	RowGroups, Bytes         request.Share
	Stored, Computed         int64 // rows of buckets, about
}

// Forecaster is a table that knows beforehand what it will read. It reads series tables and
// positions, and no samples.
type Forecaster interface {
	// Forecast adds to usage what a scan of some columns takes from the store.
	Forecast(columns []int, usage *source.Usage) (Forecast, error)
}

// kind plans the read of one kind of samples of blocks.
type kind func(c *samples.Collector, ctx context.Context) ([]source.Parts, request.Totals)

// forecast is that of a read of some kinds of samples of some of the matching series.
func (s *Store) forecast(from Reader, usage *source.Usage, of func(*lookup.Resolution) []int, kinds ...kind) (f Forecast, err error) {
	ctx, res, r, err := s.resolve(from)
	if err != nil || res == nil {
		return f, err
	}
	f.objects(res, usage)
	c := s.Samples.Collect(res.Match(of(res), r.MinT, r.MaxT))
	for _, k := range kinds {
		parts, took := k(c, ctx)
		usage.Parts(parts)
		f.add(took)
	}
	return f, nil
}

// everyone is the positions of all series.
func everyone(res *lookup.Resolution) []int {
	out := make([]int, len(res.Series))
	for i := range out {
		out[i] = i
	}
	return out
}

// objects counts the objects that hold series, and the bytes of segments, which are read as a
// whole.
func (f *Forecast) objects(res *lookup.Resolution, usage *source.Usage) {
	f.Series = len(res.Series)
	held := make([]bool, len(res.Objects))
	for i := range res.Series {
		for _, p := range res.Series[i].At {
			held[p.Object] = true
		}
	}
	for i := range res.Objects {
		switch o := &res.Objects[i]; {
		case !held[i]:
		case o.IsBlock():
			f.Blocks++
		default:
			f.Segments++
			f.Bytes.Considered, f.Bytes.Read = f.Bytes.Considered+o.Size, f.Bytes.Read+o.Size
			usage.Segment(o.Series, o.Size)
		}
	}
}

func (f *Forecast) add(took request.Totals) {
	f.RowGroups.Considered, f.RowGroups.Read = f.RowGroups.Considered+took.RowGroups.Considered, f.RowGroups.Read+took.RowGroups.Read
	f.Bytes.Considered, f.Bytes.Read = f.Bytes.Considered+took.Bytes.Considered, f.Bytes.Read+took.Bytes.Read
}

// Forecast implements Forecaster.
func (t *Samples) Forecast(_ []int, usage *source.Usage) (Forecast, error) {
	return t.Store.forecast(t.Reader, usage, everyone, (*samples.Collector).FloatParts, (*samples.Collector).HistParts)
}

// Forecast implements Forecaster.
func (t *Histograms) Forecast(_ []int, usage *source.Usage) (Forecast, error) {
	return t.Store.forecast(t.Reader, usage, withHists, (*samples.Collector).FloatParts, (*samples.Collector).HistParts)
}

// Forecast implements Forecaster.
func (t *exemplars) Forecast(_ []int, usage *source.Usage) (Forecast, error) {
	return t.store.forecast(t.Reader, usage, everyone, (*samples.Collector).ExemplarParts)
}

// Forecast implements Forecaster.
func (t *Rollup) Forecast(columns []int, usage *source.Usage) (f Forecast, err error) {
	ctx, res, r, err := t.Store.resolve(t.Reader)
	if err != nil || res == nil {
		return f, err
	}
	f.objects(res, usage)
	s, err := t.Store.Buckets.Open(ctx, res, t.Step, r.MinT, r.MaxT, t.fields(columns))
	if err != nil {
		return f, t.Reader.Fail(err)
	}
	parts, took := s.Parts()
	usage.Parts(parts)
	f.add(took)
	f.Stored, f.Computed = s.Estimate()
	return f, nil
}
