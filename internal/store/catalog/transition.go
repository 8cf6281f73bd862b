package catalog

import (
	"fmt"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"
)

// Transitions are pure: they return the next manifest. They assume that Commit gives it the
// generation after m's. An error wraps ErrConflict or ErrInvalid.

// Replace makes the outputs of a job live in place of its sources. No outputs mean that everything
// in the sources is deleted or expired. It conflicts if
//
//   - a source is not live, or a split claims it;
//   - an output is known already, be it live, retired (collected as garbage) or in a split;
//   - an output's job began more than MaxJobAge ago;
//   - a tombstone that is not applied to an output does not cover all of its sources.
func (m Manifest) Replace(now time.Time, s Sources, outputs []Block) (Manifest, error) {
	if err := m.claimable(s); err != nil {
		return Manifest{}, err
	}
	for _, b := range outputs {
		if err := m.admit(now, b, s); err != nil {
			return Manifest{}, err
		}
	}
	next := m.consume(now, s)
	next.Blocks = append(next.Blocks, outputs...)
	next.sort()
	if id, ok := twins(next.Blocks, Block.BlockID); ok {
		return Manifest{}, fmt.Errorf("replace sources: output %s is there twice: %w", id, ErrInvalid)
	}
	return next, nil
}

// Expire consumes segments and retires blocks that are past their retention. It conflicts if one is
// not live. It drops splits whose sources all expire; a split of which only some expire is a
// conflict.
func (m Manifest) Expire(now time.Time, s Sources) (Manifest, error) {
	x := indexSources(s)
	next := m
	for _, sp := range m.Splits {
		shared := x.count(sp.Sources)
		if shared == 0 {
			continue
		}
		if shared < sp.Sources.Len() {
			return Manifest{}, fmt.Errorf("expire some sources of split %s: %w", sp.ID, ErrConflict)
		}
		next = next.dropSplit(now, sp.ID)
	}
	if err := next.claimable(s); err != nil {
		return Manifest{}, err
	}
	return next.consume(now, s), nil
}

// claimable checks that a job may take the sources.
func (m Manifest) claimable(s Sources) error {
	x := indexSources(s)
	if s.Len() == 0 || len(x.segments)+len(x.blocks) != s.Len() {
		return fmt.Errorf("take sources: none at all, or one twice: %w", ErrInvalid)
	}
	for _, c := range m.Consumed {
		if x.segments[c.SegmentID] {
			return fmt.Errorf("take segment %s: generation %d consumed it: %w", c.SegmentID, c.Generation, ErrConflict)
		}
	}
	for _, sp := range m.Splits {
		if x.count(sp.Sources) > 0 {
			return fmt.Errorf("take sources: split %s claims some: %w", sp.ID, ErrConflict)
		}
	}
	_, err := m.rankOfBlocks(s)
	return err
}

// rankOfBlocks returns the highest rank of the blocks among the sources. It conflicts if one is not
// live. Only a listing has the ranks of segments.
func (m Manifest) rankOfBlocks(s Sources) (rank ulid.ULID, err error) {
	live := make(map[BlockID]ulid.ULID, len(m.Blocks))
	for _, b := range m.Blocks {
		live[b.BlockID()] = b.Rank
	}
	for _, id := range s.Blocks {
		r, ok := live[id]
		if !ok {
			return rank, fmt.Errorf("take block %s: it is not live: %w", id, ErrConflict)
		}
		rank = later(rank, r)
	}
	return rank, nil
}

// admit checks an output of a job over sources.
func (m Manifest) admit(now time.Time, b Block, s Sources) error {
	if err := b.validate(); err != nil {
		return err
	}
	rank, err := m.rankOfBlocks(s)
	if err != nil {
		return err
	}
	if b.Rank.Compare(rank) < 0 {
		return fmt.Errorf("add block %s: its rank is %s, but that of a source %s: %w", b.BlockID(), b.Rank, rank, ErrInvalid)
	}
	if err := s.within(b); err != nil {
		return err
	}
	if m.known(b.BlockID()) {
		return fmt.Errorf("add block %s: it is live, retired or part of a split: %w", b.BlockID(), ErrConflict)
	}
	if err := m.young(now, b.ID); err != nil {
		return fmt.Errorf("add block %s: %w", b.BlockID(), err)
	}
	return m.tombstonesCover(b, s)
}

// young checks that a job with this ULID may still commit.
func (m Manifest) young(now time.Time, job ulid.ULID) error {
	if age := m.at(now) - int64(job.Time()); age > MaxJobAge.Milliseconds() {
		return fmt.Errorf("its job began %d ms ago, the limit is %d: %w", age, MaxJobAge.Milliseconds(), ErrConflict)
	}
	return nil
}

// tombstonesCover checks that every tombstone which is not applied to b covers all of its sources.
// A tombstone that came after the job had read the manifest may cover only some of them: then b has
// samples that it deletes and samples that it does not.
func (m Manifest) tombstonesCover(b Block, s Sources) error {
	if b.DeletesThrough.Compare(m.LastTombstone) > 0 {
		return fmt.Errorf("add block %s: it has tombstones of the future applied: %w", b.BlockID(), ErrInvalid)
	}
	for _, id := range s.Segments {
		through := m.deletesThrough(id)
		for _, t := range m.Tombstones {
			if t.Covers(b.DeletesThrough) && !t.Covers(through) && t.Overlaps(int64(id.Window), id.Window.End()-1) {
				return fmt.Errorf("add block %s: tombstone %s, which does not cover segment %s, came in between: %w", b.BlockID(), t.ID, id, ErrConflict)
			}
		}
	}
	return nil
}

// BlockIDs returns the blocks that the manifest names in any role.
func (m *Manifest) BlockIDs() map[BlockID]bool {
	ids := map[BlockID]bool{}
	for _, b := range m.Blocks {
		ids[b.BlockID()] = true
	}
	for _, r := range m.Retired {
		ids[r.BlockID] = true
	}
	for _, sp := range m.Splits {
		for _, b := range sp.Done {
			ids[b.BlockID()] = true
		}
	}
	return ids
}

// known reports whether the manifest names a block of this identity.
func (m Manifest) known(id BlockID) bool {
	is := func(b Block) bool { return b.BlockID() == id && !b.empty() }
	return slices.ContainsFunc(m.Blocks, is) ||
		slices.ContainsFunc(m.Splits, func(sp Split) bool { return slices.ContainsFunc(sp.Done, is) }) ||
		slices.ContainsFunc(m.Retired, func(r Retired) bool { return r.BlockID == id })
}

// consume returns m with the sources no longer live.
func (m Manifest) consume(now time.Time, s Sources) Manifest {
	x := indexSources(s)
	next := m.clone()
	next.Blocks = slices.DeleteFunc(next.Blocks, func(b Block) bool { return x.blocks[b.BlockID()] })
	next.Sealed = slices.DeleteFunc(next.Sealed, func(e Sealed) bool { return x.segments[e.SegmentID] })
	for _, id := range s.Segments {
		next.Consumed = append(next.Consumed, Consumed{SegmentID: id, At: m.at(now), Generation: m.Generation + 1})
	}
	next.Retired = append(next.Retired, m.retire(now, s.Blocks)...)
	next.sort()
	return next
}

func (m Manifest) retire(now time.Time, ids []BlockID) []Retired {
	out := make([]Retired, 0, len(ids))
	for _, id := range ids {
		out = append(out, Retired{BlockID: id, At: m.at(now), Generation: m.Generation + 1})
	}
	return out
}

func later(a, b ulid.ULID) ulid.ULID {
	if a.Compare(b) < 0 {
		return b
	}
	return a
}
