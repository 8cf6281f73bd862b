package model

import (
	"fmt"
	"strings"
	"testing"
)

// The garbage model has one segment (object 0), whose data compactors move from block to block,
// collectors that delete replaced objects, and a reader. Contents do not matter, times do: the
// data must be in exactly one live object, and a reader must find it.
const (
	maxObjects    = 4
	deletionDelay = 2 // ticks
	longestQuery  = 1 // ticks, less than the deletion delay
	lastTick      = 6 // enough to replace, delete and forget an object, plus one tick
)

// garbageRules are the rules; each can be left out. The zero value is the protocol.
type garbageRules struct {
	objects, compactors, collectors int
	reader                          bool

	// an entry's time is the one that the committer drew, until a successor corrects it to the
	// store's time: the old protocol
	drawnTime    bool
	machineClock bool // a collector compares with its own clock, which may be ahead
	noDelay      bool // replaced objects are deleted at once
	forgetAtOnce bool // the entry of a deleted object is dropped without waiting for readers
	// jobs commit however long ago they started: the old protocol compares machine clocks
	noFloor   bool
	lateFloor bool // a job began when it read the manifest, not before its listing
	noDoom    bool // orphans are deleted without a commit that forbids their use
}

// entry is the manifest's record of an object that is not live and never will be.
type entry struct {
	phase phase // idle: no entry; listed: replaced, or an orphan; done: gone
	at    int8  // time of the commit that added the entry
	// the entry is from the current manifest, so the manifest's own time is the store's time of it
	fresh      bool
	generation int8 // of the commit that recorded its deletion
}

type manifest struct {
	generation, floor int8
	time              int8 // the store's
	live              set  // blocks
	entries           [maxObjects]entry
}

type garbageState struct {
	now       int8
	present   set
	uploads   int8
	manifest  manifest
	jobs      [2]job
	workers   [2]worker
	reader    query
	misplaced set // objects that a reader found live, if not exactly one
}

type job struct {
	phase          phase
	listed         bool // the segment
	source, output int8
	drawn          int8
	generation     int8 // of a manifest before its listing
}

type worker struct {
	phase  phase
	victim int8
	doom   bool
	drawn  int8
}

type query struct {
	phase   phase
	start   int8
	listed  bool // the segment
	needed  set
	missing set // objects that it did not find, although it was in time
}

func (m *manifest) segmentLive() bool { return m.entries[0].phase == idle }

// commit makes the next manifest: the successor records the store's time of its predecessor.
func (s *garbageState) commit(change func(m *manifest)) {
	m := &s.manifest
	for i := range m.entries {
		if e := &m.entries[i]; e.fresh {
			e.fresh, e.at = false, m.time
		}
	}
	m.generation++
	m.time = s.now
	change(m)
}

// since returns the time at which an object was replaced or deleted, according to this manifest.
func (m *manifest) since(e *entry, rules garbageRules) int8 {
	if e.fresh && !rules.drawnTime {
		return m.time
	}
	return e.at
}

func (r garbageRules) check(s *garbageState) error {
	if s.reader.missing != 0 {
		return fmt.Errorf("P6: a reader that is in time does not find object %d", s.reader.missing.first())
	}
	if s.misplaced != 0 {
		return fmt.Errorf("P4: a reader takes the objects %03b for live", s.misplaced.without(1<<7))
	}
	if l := s.manifest.live; l&(l-1) != 0 {
		return fmt.Errorf("P4: the data is live twice, in blocks %03b", l)
	}
	if l := s.manifest.live.without(s.present); l != 0 {
		return fmt.Errorf("P4: block %d is live and deleted", l.first())
	}
	return nil
}

func (s *garbageState) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "| t%d, present %03b, manifest %d: blocks %03b", s.now, s.present, s.manifest.generation, s.manifest.live)
	for i, e := range s.manifest.entries {
		if e.phase != idle {
			state := "replaced"
			if e.phase == done {
				state = "gone"
			}
			fmt.Fprintf(&b, ", %d %s", i, state)
		}
	}
	return b.String()
}

func (r garbageRules) system() system[garbageState] {
	return system[garbageState]{
		initial: garbageState{present: 1}, next: r.next, check: r.check, describe: (*garbageState).describe,
	}
}

func TestGarbage(t *testing.T) {
	reading := garbageRules{objects: 3, compactors: 1, collectors: 1, reader: true}
	working := garbageRules{objects: 3, compactors: 2, collectors: 1}
	t.Run("one compactor and a reader", func(t *testing.T) { verdict(t, "", reading.system()) })
	t.Run("two compactors", func(t *testing.T) { verdict(t, "", working.system()) })
	if exploreLarge {
		t.Run("two compactors and a reader", func(t *testing.T) {
			verdict(t, "", garbageRules{objects: 3, compactors: 2, collectors: 1, reader: true}.system())
		})
		t.Run("two collectors", func(t *testing.T) {
			verdict(t, "", garbageRules{objects: 3, compactors: 2, collectors: 2}.system())
		})
	}
	for _, tc := range []struct {
		name, promise string
		base          garbageRules
		leave         func(*garbageRules)
	}{
		{"the old protocol: replaced since the time that a commit drew before it was suspended", "P6", reading, func(r *garbageRules) { r.drawnTime = true }},
		{"the old protocol: a job that slept commits what was forgotten", "P4", working, func(r *garbageRules) { r.noFloor = true }},
		{"a job that slept between listing and reading commits what was forgotten", "P4", working, func(r *garbageRules) { r.lateFloor = true }},
		{"a collector's clock is ahead", "P6", reading, func(r *garbageRules) { r.machineClock = true }},
		{"no delay", "P6", reading, func(r *garbageRules) { r.noDelay = true }},
		{"entries are dropped with their objects", "P4", reading, func(r *garbageRules) { r.forgetAtOnce = true }},
		{"orphans are deleted without a commit", "P4", working, func(r *garbageRules) { r.noDoom = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := tc.base
			tc.leave(&r)
			verdict(t, tc.promise, r.system())
		})
	}
}
