package model

import (
	"fmt"
	"math/bits"
)

type phase int8

const (
	idle phase = iota
	begun
	listed // the listing is in the process's state
	read   // it has read the manifest
	asked  // it has read the queue's time
	committed
	done
)

// none is the value of a point without a sample. A value is the number of a write plus one.
const none = 0

// set is a set of writes, deletions, slots, blocks or points.
type set uint8

func (s set) has(i int) bool    { return s>>i&1 == 1 }
func (s set) with(i int) set    { return s | 1<<i }
func (s set) without(o set) set { return s &^ o }
func (s set) first() int        { return bits.TrailingZeros8(uint8(s)) }
func (s set) each(f func(i int)) { // in order
	for i := range 8 {
		if s.has(i) {
			f(i)
		}
	}
}

// write is a writer and its one write. The facts on which its promises depend are recorded when it
// begins.
type write struct {
	phase      phase
	sent, rank int8 // sent: for queued writes, when the message was sent, by the queue's clock
	prior      set  // writes acknowledged before it began
	after      set  // deletions acknowledged before it began
}

// slot is a segment. It is live while it is present and not consumed. present is state of the
// store, the other changing fields are state of the manifest.
type slot struct {
	present, consumed, gone bool
	rank                    int8
	time                    int8 // if it matters: when it was put, or its message was sent
	sealed                  int8 // number of the first tombstone that listed it
}

// block is a live block if used.
type block struct {
	used    bool
	rank    int8
	through int8 // deletes_through
	value   [maxPoints]int8
}

// tombstone is in the manifest while it is present. Deletion i creates tombstone i.
type tombstone struct {
	present bool
	number  int8
	through int8 // queued_through
}

type deletion struct {
	phase  phase
	begin  set  // writes acknowledged before it began
	listed set  // slots
	time   int8 // queued_through
}

type compactor struct {
	phase  phase
	listed set  // slots
	at     int8 // the trusted time before the listing
	// after the listing, no segment with a rank up to this appears, unless its message is late
	complete int8
	slots    set // sources
	blocks   set
	out      block
}

type collector struct {
	phase  phase
	victim int8
}

// reader is judged by the promises at the time when it begins.
type reader struct {
	phase   phase
	listed  set // slots
	writes  set // acknowledged, and no longer on the queue
	deleted set // deletions acknowledged
	verdict breach
}

// state is the whole world.
type state struct {
	now   int8 // the trusted clock: the time of the store and the queue, in coarse units
	order int8 // order of puts and sends within the trusted time
	id    int8 // old protocol: the manifest's id
	last  int8 // number of the newest tombstone ever

	writes [maxWrites]write
	slots  [maxSlots]slot
	blocks [maxBlocks]block // block i is the result of merge i
	merges int8
	tombs  [maxDels]tombstone
	dels   [maxDels]deletion
	comps  [maxComps]compactor
	gcs    [maxGCs]collector
	reader reader

	deleted set // writes that a reader missed after a deletion
	passed  set // queued writes that a block with a higher rank has overtaken
}

// breach is a promise that was broken. The zero value is none.
type breach struct {
	promise int8
	value   int8
	other   int8
}

var promises = [...]string{
	1: "P1: write %d, acknowledged before deletion %d began, is seen after its acknowledgement",
	2: "P2/P4: acknowledged write %d is missing (point %d)",
	3: "P3: write %d is seen instead of write %d, which began after its acknowledgement",
	5: "P5: write %d was deleted for a reader and is back (point %d)",
}

func (b breach) err() error {
	if b.promise == 0 {
		return nil
	}
	return fmt.Errorf(promises[b.promise], b.value, b.other)
}
