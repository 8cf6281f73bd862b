package lookup

import (
	"slices"

	"github.com/promlake/promlake/internal/query/index"
	"github.com/promlake/promlake/internal/query/request"
)

// finder merges the rows of objects to series, one per distinct label set.
type finder struct {
	limit int // series

	series []Series
	keys   []index.Key // by series
	order  []int32     // the first series by labels; nobody changes it
	byKey  map[index.Key]int32
}

// view returns a finder that begins with the series of f. Both may be added to.
func (f *finder) view() finder {
	return finder{limit: f.limit, series: slices.Clip(f.series), keys: slices.Clip(f.keys), order: f.order}
}

// add returns the rows of an object for which keep is true, of ranges.
func (f *finder) add(t *index.Table, ranges []index.Range, keep func(row int) bool) ([]Row, error) {
	n := 0
	for _, x := range ranges {
		n += int(x.To - x.From)
	}
	if n == 0 {
		return nil, nil
	}
	rows, first := make([]Row, 0, n), len(f.series) == 0
	if first { // the first object has most series
		f.series, f.keys = make([]Series, 0, min(n, f.limit)), make([]index.Key, 0, min(n, f.limit))
	}
	var reader *index.Reader
	keys, guess := t.Keys(), int32(0)
	for _, x := range ranges {
		for at := int(x.From); at < int(x.To); at++ {
			if !keep(at) {
				continue
			}
			k, known, key := int32(len(f.series)), false, keys.Of(at)
			if !first { // the first object has every series once
				k, known = f.find(key, guess)
			}
			if !known {
				if len(f.series) >= f.limit {
					return nil, request.TooManySeries(f.limit, len(f.series)+1)
				}
				if reader == nil {
					reader = t.NewReader()
				}
				if f.byKey != nil {
					f.byKey[key] = k
				}
				f.keys = append(f.keys, key)
				f.series = append(f.series, Series{Labels: reader.Labels(at)})
			}
			guess = k + 1
			rows = append(rows, Row{k, int32(at)})
		}
	}
	return rows, nil
}

// find returns the series of a key, or the number that it will have. Most objects have the same
// series in the same order, so the guess is mostly right.
func (f *finder) find(key index.Key, guess int32) (k int32, known bool) {
	if int(guess) < len(f.keys) && f.keys[guess] == key {
		return guess, true
	}
	if f.byKey == nil {
		f.byKey = make(map[index.Key]int32, len(f.keys))
		for i, key := range f.keys {
			f.byKey[key] = int32(i)
		}
	}
	if k, known = f.byKey[key]; known {
		return k, true
	}
	return int32(len(f.series)), false
}
