package catalog

import (
	"fmt"

	"github.com/promlake/promlake/internal/format/key"
)

// Len returns the number of sources.
func (s Sources) Len() int { return len(s.Segments) + len(s.Blocks) }

// String lists the sources in the manifest's order.
func (s Sources) String() string {
	return fmt.Sprintf("%d segments %v, %d blocks %v", len(s.Segments), s.Segments, len(s.Blocks), s.Blocks)
}

// within checks that all sources lie in the window of a block.
func (s Sources) within(b Block) error {
	outside := func(w key.Window, l key.Level) bool { return w < b.Window || l.End(w) > b.Level.End(b.Window) }
	for _, id := range s.Segments {
		if outside(id.Window, key.L2h) {
			return fmt.Errorf("add block %s: source %s is not in its window: %w", b.BlockID(), id, ErrInvalid)
		}
	}
	for _, id := range s.Blocks {
		if outside(id.Window, id.Level) {
			return fmt.Errorf("add block %s: source %s is not in its window: %w", b.BlockID(), id, ErrInvalid)
		}
	}
	return nil
}

// sourceIndex is a set of sources.
type sourceIndex struct {
	segments map[SegmentID]bool
	blocks   map[BlockID]bool
}

func indexSources(s Sources) sourceIndex {
	x := sourceIndex{make(map[SegmentID]bool, len(s.Segments)), make(map[BlockID]bool, len(s.Blocks))}
	for _, id := range s.Segments {
		x.segments[id] = true
	}
	for _, id := range s.Blocks {
		x.blocks[id] = true
	}
	return x
}

// count returns how many of s are in the set.
func (x sourceIndex) count(s Sources) (n int) {
	for _, id := range s.Segments {
		if x.segments[id] {
			n++
		}
	}
	for _, id := range s.Blocks {
		if x.blocks[id] {
			n++
		}
	}
	return n
}
