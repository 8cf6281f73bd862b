package compact

import (
	"bytes"
	"math"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/recent"
)

// partAge is the age of segments at which they are merged from a head: half of the time for which
// it has their samples, because cycles may be late.
const partAge = 5 * time.Minute

// policy returns the policy for a tenant.
func (s *Stage) policy(tenant string) plan.Policy {
	p := s.set.Policy
	if since, ok := s.set.Recent.Keeps(tenant); ok {
		p.PartAge, p.PartFrom = partAge, since.Add(-p.SettleDelay)
	}
	return p
}

// kept is a source that is in memory: its content, or what is known of a segment whose samples are
// in a head. Of several of those that follow one another, the first has the samples of all.
type kept struct {
	content *recent.Segment // nil: it is in a head
	waiting recent.Waiting
	part    *recent.Part // nil: that of a source before
	through ulid.ULID    // of part: the least of its segments
}

// recent returns the sources as they are in memory, and their label sets, if all are segments that
// this process has written from one table and still has in memory. Otherwise it returns nil: the
// label sets of a source that is read are interned in another table.
//
// A segment in memory is equal to its object, which never changes once it is stored. A listed
// object of another size is not the one that was stored: it is read, and the merge reports what is
// wrong with it.
func (o *opener) recent(srcs []plan.Source) (all []kept, known *recent.Labels) {
	if o.s.set.Recent == nil || len(srcs) == 0 {
		return nil, nil
	}
	for i := range srcs {
		if !srcs[i].IsSegment {
			return nil, nil
		}
		k, l := kept{}, (*recent.Labels)(nil)
		name, size := srcs[i].Segment.Key(o.tenant).String(), srcs[i].Bytes
		if k.content = o.s.set.Recent.Get(name, size); k.content != nil {
			l = k.content.Labels
		} else if w, ok := o.s.set.Recent.Waiting(name, size); ok && !o.hasDeletions(&srcs[i]) && o.job.Kind == plan.Merge {
			k.waiting, l = w, w.Labels
		}
		if l == nil || i > 0 && l != known {
			return nil, nil
		}
		all, known = append(all, k), l
	}
	for from := 0; from < len(all); from++ {
		if all[from].content != nil {
			continue
		}
		to := from
		var names []string
		through := srcs[from].Through
		for ; to < len(all) && all[to].content == nil; to++ {
			names = append(names, srcs[to].Segment.Key(o.tenant).String())
			if t := srcs[to].Through; t.Compare(through) < 0 {
				through = t
			}
		}
		part, ok := o.s.set.Recent.Head(o.tenant).Part(names)
		if !ok {
			return nil, nil
		}
		all[from].part, all[from].through = part, through
		from = to
	}
	return all, known
}

// end notes the time of a segment's last sample, if the process keeps recent samples by series.
func (o *opener) end(id catalog.SegmentID, data []byte) {
	if o.s.set.Recent == nil {
		return
	}
	if info, err := segment.ReadInfo(bytes.NewReader(data), int64(len(data))); err == nil {
		o.out.ends[id] = info.MaxT
	}
}

// note tells the recent samples what a block is merged from, before it becomes live. Where
// deletions were applied it has fewer samples than they, so they begin anew.
func (s *Stage) note(r *Result, w *output) {
	h := s.set.Recent.Head(r.Tenant)
	if len(w.tombs) > 0 {
		h.Restart()
		return
	}
	if r.Job.Kind != plan.Merge || w.entry.Bytes == 0 {
		return
	}
	sources := make([]recent.Source, len(w.in.taken))
	for i := range w.in.taken {
		src := &w.in.taken[i]
		if !src.IsSegment {
			sources[i] = recent.Source{Name: src.Block.Key(r.Tenant).File(block.SeriesFile), MaxT: src.Block.MaxT}
			continue
		}
		upto, ok := w.in.ends[src.Segment]
		if !ok { // it was in memory, or has no footer that can be read
			upto = math.MaxInt64
		}
		sources[i] = recent.Source{Name: src.Segment.Key(r.Tenant).String(), MaxT: upto}
	}
	h.Merged(w.files.Block().File(block.SeriesFile), sources)
}
