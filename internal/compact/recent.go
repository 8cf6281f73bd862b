package compact

import (
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/recent"
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
