package query

import (
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/live"
	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
)

// resolver finds the series of objects, one memSeries per distinct label set, and where the objects have them.
type resolver struct {
	settings  *Settings
	deletions *live.Deletions

	series  []*memSeries // in order of discovery
	members [][]member   // by object; by row
	byKey   map[index.Key]int32
	keys    []index.Key // by series
	slab    []memSeries // room for series
}

// member is a series' row of an object.
type member struct{ series, row int32 }

// add takes the rows of the next object for which keep is true.
func (r *resolver) add(t *index.Table, rows []index.Range, keep func(row int) bool) error {
	n := count(rows)
	members := make([]member, 0, n)
	var reader *index.Reader
	guess := int32(0)
	for _, x := range rows {
		for row := int(x.From); row < int(x.To); row++ {
			if !keep(row) {
				continue
			}
			k, known := r.find(t.Key(row), guess)
			if !known {
				if len(r.series) >= r.settings.MaxSeries {
					return request.TooManySeries(r.settings.MaxSeries, len(r.series)+1)
				}
				if reader == nil {
					reader = t.NewReader()
				}
				r.found(t.Key(row), reader.Labels(row), n)
			}
			guess = k + 1
			members = append(members, member{k, int32(row)})
		}
	}
	r.members = append(r.members, members)
	return nil
}

func count(rows []index.Range) (n int) {
	for _, x := range rows {
		n += int(x.To - x.From)
	}
	return n
}

// find returns the series of a key, or the number that it will have. Objects have mostly the same series in the same order, so that the guess is
// mostly right.
func (r *resolver) find(key index.Key, guess int32) (k int32, known bool) {
	if int(guess) < len(r.keys) && r.keys[guess] == key {
		return guess, true
	}
	if len(r.members) == 0 { // the first object has every series once
		return int32(len(r.series)), false
	}
	if r.byKey == nil {
		r.byKey = make(map[index.Key]int32, len(r.keys))
		for i, key := range r.keys {
			r.byKey[key] = int32(i)
		}
	}
	if k, known = r.byKey[key]; known {
		return k, true
	}
	return int32(len(r.series)), false
}

// slabSeries is how many series memory is taken for at once, at most.
const slabSeries = 512

// found adds a series. more is how many may follow.
func (r *resolver) found(key index.Key, lset labels.Labels, more int) {
	if r.byKey != nil {
		r.byKey[key] = int32(len(r.series))
	}
	r.keys = append(r.keys, key)
	if len(r.slab) == 0 {
		r.slab = make([]memSeries, min(more, slabSeries))
	}
	s := &r.slab[0]
	r.slab = r.slab[1:]
	s.labels, s.tombs = lset, r.deletions.Matching(nil, lset)
	r.series = append(r.series, s)
}
