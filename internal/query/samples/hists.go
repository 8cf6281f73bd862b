package samples

import (
	"context"
	"fmt"
	"sync"
	"unsafe"

	"github.com/prometheus/prometheus/model/histogram"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/store/live"
)

// histPoint is one histogram sample; exactly one of h and fh is set.
type histPoint struct {
	rank  uint32 // as in fragment
	t, st int64
	h     *histogram.Histogram
	fh    *histogram.FloatHistogram
}

// histogramUnit is the number of encoded bytes of a histogram that count as one sample.
const histogramUnit = 16

var histReaders = sync.Pool{New: func() any { return new(block.HistReader) }}

// foundHist is a histogram and its series.
type foundHist struct {
	series int32
	point  histPoint
}

// histsFrom is the time (ms) from which histograms are read: the last one before the range shows
// whether a counter was reset. It is searched as far back as the lookback.
func (r *Collector) histsFrom() int64 { return r.MinT - r.reader.settings.Lookback.Milliseconds() }

// blockHists reads the native histograms in blocks.
func (r *Collector) blockHists(ctx context.Context) error {
	from := r.histsFrom()
	p := r.plan(ctx, block.HistFiles, from, (*index.Table).Hists, nil)
	if len(p.groups) > 0 {
		r.Unread = max(r.Unread, from-1)
	}
	got := make([][]foundHist, len(p.groups))
	err := r.run(ctx, p, func(i int, g *rowGroup) (err error) {
		got[i], err = r.groupHists(g, from)
		return err
	})
	if err != nil {
		return err
	}
	for _, hs := range got {
		for i := range hs {
			s := r.got[hs[i].series]
			s.hists = append(s.hists, hs[i].point)
		}
	}
	return nil
}

// groupHists reads one row group.
func (r *Collector) groupHists(g *rowGroup, from int64) (out []foundHist, err error) {
	hr := histReaders.Get().(*block.HistReader)
	defer histReaders.Put(hr)
	if _, err := hr.Select(g.in, g.group, g.rows, from, r.MaxT); err != nil {
		return nil, err
	}
	err = hr.Read(func(i int, t int64, blob string) error {
		k := g.members[i].Series
		p, ok, err := r.histogram(r.got[k], g.object, t, blob)
		if ok {
			out = append(out, foundHist{k, p})
		}
		return err
	})
	return out, err
}

// histogram decodes a histogram sample of a series in an object; ok is false if it is deleted.
func (r *Collector) histogram(s *collected, object int, t int64, blob string) (p histPoint, ok bool, err error) {
	if live.Within(t, r.Deletions.Gone(nil, object, s.Tombstones)) {
		return p, false, nil
	}
	if err := r.hold(1 + int64(len(blob))/histogramUnit); err != nil {
		return p, false, err
	}
	h, err := segment.DecodeHist(unsafe.Slice(unsafe.StringData(blob), len(blob)))
	if err != nil {
		return p, false, r.Objects[object].Broken(fmt.Errorf("read series %s: %w", s.Labels, err))
	}
	return histPoint{rank: uint32(object), t: h.T, st: h.ST, h: h.H, fh: h.FH}, true, nil
}
