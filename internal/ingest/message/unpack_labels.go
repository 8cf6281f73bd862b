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
	rows := u.reader
	unknown := u.look()
	if u.err != nil || unknown == 0 {
		return nil
	}
	after := u.reader
	u.reader = rows
	err := u.learn()
	u.reader = after
	return err
}

// each reads the series one after another. names are the label names of the current series' shape,
// ascending; the last value of each of these names is that of the series.
func (u *unpacker) each(visit func(number int, names []uint32) error) error {
	kinds := reader{b: u.b}
	for range u.refs {
		u.below(len(u.ends))
	}
	if u.err != nil {
		return nil
	}
	for i := range u.names {
		u.names[i].last = 0
	}
	for i := range u.refs {
		k := kinds.uvarint()
		from := uint32(0)
		if k > 0 {
			from = u.ends[k-1]
		}
		names := u.shapes[from:u.ends[k]]
		for _, x := range names {
			n := &u.names[x]
			v := uint64(n.last) + uint64(u.varint())
			if v >= uint64(len(n.values)) {
				u.fail("value number %d of %d", int64(v), len(n.values))
				return nil
			}
			n.last = uint32(v)
		}
		if err := visit(i, names); err != nil {
			return err
		}
	}
	return nil
}

// look finds the series that are known and returns how many are not.
func (u *unpacker) look() (unknown int) {
	t := u.table
	t.RLock()
	defer t.RUnlock()
	// Visiting a series does not fail.
	_ = u.each(func(i int, names []uint32) error {
		ref, ok := t.LookupNear(u.hash(names), u.guess)
		if ok {
			u.refs[i], u.guess = ref, ref+1
		} else {
			u.refs[i] = remotewrite.NoRef
			unknown++
		}
		return nil
	})
	return unknown
}

// hash is the key of the series at hand: a hash of the hashes of its labels.
func (u *unpacker) hash(names []uint32) series.Key {
	u.key = u.key[:0]
	for _, x := range names {
		n := &u.names[x]
		at := 16 * int(n.last)
		u.key = append(u.key, n.hashes[at:at+16]...)
	}
	return xxh3.Hash128Seed(u.key, u.seed)
}

// learn interns the series that are not known.
func (u *unpacker) learn() error {
	t := u.table
	t.Lock()
	defer t.Unlock()
	return u.each(func(i int, names []uint32) error {
		if u.refs[i] != remotewrite.NoRef {
			return nil
		}
		k := u.hash(names)
		ref, ok := t.Lookup(k)
		if !ok {
			u.ClearLabels()
			for _, x := range names {
				n := &u.names[x]
				u.AppendLabel(series.Label{Name: n.name, Value: n.values[n.last]})
			}
			var err error
			if ref, err = u.Intern(k, false); err != nil {
				return err
			}
		}
		u.refs[i] = ref
		return nil
	})
}
