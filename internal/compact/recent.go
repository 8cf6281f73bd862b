package compact

import (
	"bytes"
	"math"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/recent"
	"github.com/promlake/promlake/internal/recent/head"
	"github.com/promlake/promlake/internal/segment"
)

// recent returns the content of all sources, and their label sets, if all are
// segments that this process has written from one table and still has in memory. Otherwise it
// returns nil: the label sets of a source that is read are interned in another table.
//
// A segment in memory is equal to its object, which never changes once it is stored. A listed
// object of another size is not the one that was stored: it is read, and the merge reports what is
// wrong with it.
func (s *Stage) recent(tenant string, srcs []plan.Source) (all []*recent.Segment, known *recent.Labels) {
	if s.set.Recent == nil || len(srcs) == 0 {
		return nil, nil
	}
	for i := range srcs {
		if !srcs[i].IsSegment {
			return nil, nil
		}
		c := s.set.Recent.Get(srcs[i].Segment.Key(tenant).String(), srcs[i].Bytes)
		if c == nil || i > 0 && c.Labels != all[0].Labels {
			return nil, nil
		}
		all = append(all, c)
	}
	return all, all[0].Labels
}

// end notes the time of a segment's last sample, if the process keeps recent samples by series.
func (o *opener) end(id catalog.SegmentID, data []byte) {
	if o.s.set.Recent == nil {
		return
	}
	upto := int64(math.MaxInt64)
	if info, err := segment.ReadInfo(bytes.NewReader(data), int64(len(data))); err == nil {
		upto = info.MaxT
	}
	if o.out.ends == nil {
		o.out.ends = map[catalog.SegmentID]int64{}
	}
	o.out.ends[id] = upto
}

// note tells the recent samples what a block is merged from, before it becomes live. Where deletions
// were applied it has fewer samples than they, so they begin anew.
func (s *Stage) note(r *Result, w *output) {
	h := s.set.Recent.Head(r.Tenant)
	if len(w.tombs) > 0 {
		h.Again()
		return
	}
	if r.Job.Kind != plan.Merge || w.entry.Bytes == 0 {
		return
	}
	sources := make([]head.Source, len(w.in.taken))
	for i := range w.in.taken {
		src := &w.in.taken[i]
		if !src.IsSegment {
			sources[i] = head.Source{Name: src.Block.Key(r.Tenant).File(block.SeriesFile), MaxT: src.Block.MaxT}
			continue
		}
		upto, ok := w.in.ends[src.Segment]
		if !ok { // it was in memory
			upto = math.MaxInt64
		}
		sources[i] = head.Source{Name: src.Segment.Key(r.Tenant).String(), MaxT: upto}
	}
	h.Merged(w.files.Block().File(block.SeriesFile), sources)
}
