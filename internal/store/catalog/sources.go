package catalog

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"

	"github.com/oklog/ulid/v2"

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

// rankOf returns the rank of a segment from the time at which the store modified it. The time of a
// segment from the queue is that at which the queue got its newest message. So ranks have the order
// in which writes were acknowledged, by the clock of the store or of the queue. Within one tick of
// that clock the time of the key's ULID decides, as a distance from the tick.
//
//	 48 bits           20 bits            30 bits                    30 bits
//	┌─────────────────┬──────────────────┬──────────────────────────┬───────────────────┐
//	│ time, ms        │ rest, ns         │ ms of the key's ID - ms  │ its entropy       │
//	│                 │                  │ + 2^29, modulo 2^30      │                   │
//	└─────────────────┴──────────────────┴──────────────────────────┴───────────────────┘
//
// The distance is the error of the writer's clock. So the modulus reverses the order of two IDs of
// one tick only if that clock is wrong by 6.2 days, and just in that second.
func rankOf(s key.Segment, modified time.Time) (rank ulid.ULID) {
	at := modified
	if s.Queued {
		at = ulid.Time(s.ID.Time())
	}
	ms, rest := at.UnixMilli(), at.UnixNano()%int64(time.Millisecond)
	if ms < 0 || ms > int64(ulid.MaxTime()) {
		ms, rest = int64(s.ID.Time()), 0 // a store without times: the identifier decides
	}
	_ = rank.SetTime(uint64(ms)) // in range
	const bits30 = 1<<30 - 1
	ahead := uint64(int64(s.ID.Time())-ms+1<<29) & bits30
	entropy := uint64(binary.BigEndian.Uint32(s.ID[6:10])) >> 2
	own := ahead<<30 | entropy
	binary.BigEndian.PutUint16(rank[6:8], uint16(rest>>4))
	binary.BigEndian.PutUint64(rank[8:16], uint64(rest&15)<<60|own)
	return rank
}

// equal reports whether two manifests have the same JSON, which has no empty lists.
func (m *Manifest) equal(o *Manifest) bool {
	a, b := reflect.ValueOf(m).Elem(), reflect.ValueOf(o).Elem()
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		empty := x.Kind() == reflect.Slice && x.Len()+y.Len() == 0
		if !empty && !reflect.DeepEqual(x.Interface(), y.Interface()) {
			return false
		}
	}
	return true
}
