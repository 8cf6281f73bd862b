package message

import (
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// series reads the label sets and finds each in the table, or interns it: u.refs are their
// references.
func (u *unpacker) series() error {
	n := u.count(1)
	if !u.Take(remotewrite.CostRef * int64(n)) {
		return nil
	}
	u.refs = make([]series.Ref, n)
	kinds := reader{b: u.b}
	for range u.refs {
		u.below(len(u.ends))
	}
	if u.err != nil {
		return nil
	}
	u.table.Lock()
	defer u.table.Unlock()
	for i := range u.refs {
		k := kinds.uvarint()
		from := uint32(0)
		if k > 0 {
			from = u.ends[k-1]
		}
		names := u.shapes[from:u.ends[k]] // ascending
		for _, x := range names {
			n := &u.names[x]
			v := uint64(n.last) + uint64(u.varint())
			if v >= uint64(len(n.values)) {
				u.fail("value number %d of %d", int64(v), len(n.values))
				return nil
			}
			n.last = uint32(v)
		}
		ref, err := u.find(names)
		if err != nil {
			return err
		}
		u.refs[i], u.guess = ref, ref+1
	}
	return nil
}

// find returns the series with the last values of names, whose key is a hash of the hashes of its
// labels. It interns a series that is not known. The caller holds the table's lock.
func (u *unpacker) find(names []uint32) (series.Ref, error) {
	u.key = u.key[:0]
	for _, x := range names {
		n := &u.names[x]
		at := 16 * int(n.last)
		u.key = append(u.key, n.hashes[at:at+16]...)
	}
	k := xxh3.Hash128Seed(u.key, u.seed)
	if ref, ok := u.table.LookupNear(k, u.guess); ok {
		return ref, nil
	}
	u.ClearLabels()
	for _, x := range names {
		n := &u.names[x]
		u.AppendLabel(series.Label{Name: n.name, Value: n.values[n.last]})
	}
	return u.Intern(k, false)
}
