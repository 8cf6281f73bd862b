package model

import (
	"fmt"
	"math/bits"
	"testing"
)

// The history model has committers that each add something to the manifest, and an operator who
// restores an older manifest. A manifest is the set of additions; its generation is their number.
// Its ETag depends only on its content, so a restored manifest has its former ETag.
const committers = 3

// historyRules are the rules of a commit. The zero value is the protocol.
type historyRules struct {
	ignoresIfMatch bool // the store swaps regardless of the ETag
	restores       bool // an operator restores an older manifest, once
	blind          bool // no committer reads the copies: the old protocol
	// a commit copies the manifest that it replaces, not the new one, before it is acknowledged
	predecessors bool
	newerOnly    bool // a copy with the manifest's generation does not stop a commit
}

type historyState struct {
	manifest  set
	was       set // all manifests so far, as a set of sets
	copies    set // the manifests that have a copy, likewise
	restored  bool
	committer [committers]committer
}

type committer struct {
	phase   phase
	begun   bool
	prior   set  // acknowledged before it began
	base    set  // the manifest that it read
	fork    bool // a copy exists that is no ancestor of the manifest
	refused bool
}

func generation(manifest set) int { return bits.OnesCount8(uint8(manifest)) }

func (r historyRules) next(s *historyState, emit func(step, historyState)) {
	to := func(label step, change func(*historyState)) {
		n := *s
		change(&n)
		n.was = n.was.with(int(n.manifest))
		emit(label, n)
	}
	if r.restores && !s.restored {
		s.was.without(set(1) << s.manifest).each(func(old int) {
			to(step{what: "the manifest %03b is put back%.0d%.0d", who: int8(old)}, func(n *historyState) { n.manifest, n.restored = set(old), true })
		})
	}
	for i := range s.committer {
		r.commit(s, i, to)
	}
}

// commit is a step of a committer: it reads the manifest, lists the copies, reads the manifest
// again, copies the manifest that it read unless a copy exists, swaps, copies the new one, and is
// acknowledged.
func (r historyRules) commit(s *historyState, i int, to func(step, func(*historyState))) {
	own, c := int8(i), &s.committer[i]
	switch c.phase {
	case idle:
		to(step{"committer %d: reads manifest %03b%.0d", own, [2]int8{int8(s.manifest)}}, func(n *historyState) {
			prior := c.prior
			if !c.begun {
				prior = n.acknowledged()
			}
			n.committer[i] = committer{phase: read, begun: true, prior: prior, base: n.manifest}
		})
	case read:
		to(step{"committer %d: lists the copies%.0d%.0d", own, [2]int8{}}, func(n *historyState) {
			n.committer[i].phase, n.committer[i].fork = listed, r.forked(n, c.base)
		})
	case listed:
		if c.fork && s.manifest == c.base {
			to(step{"committer %d: refuses, for there is a copy that the manifest does not stem from%.0d%.0d", own, [2]int8{}}, func(n *historyState) {
				n.committer[i] = committer{phase: done, refused: true}
			})
			return
		}
		to(step{"committer %d: copies what it read%.0d%.0d", own, [2]int8{}}, func(n *historyState) {
			n.copies = n.copies.with(int(c.base))
			n.committer[i].phase = begun
		})
	case begun:
		if s.manifest != c.base && !r.ignoresIfMatch {
			to(step{"committer %d: conflict%.0d%.0d", own, [2]int8{}}, func(n *historyState) {
				n.committer[i] = committer{phase: idle, begun: true, prior: c.prior}
			})
			return
		}
		to(step{"committer %d: swaps%.0d%.0d", own, [2]int8{}}, func(n *historyState) {
			n.manifest = c.base.with(i)
			n.committer[i].phase = committed
		})
	case committed:
		to(step{"committer %d: copies what it made, acknowledged%.0d%.0d", own, [2]int8{}}, func(n *historyState) {
			if !r.predecessors {
				n.copies = n.copies.with(int(c.base.with(i)))
			}
			n.committer[i].phase = done
		})
	}
}

// forked reports whether a copy is not an ancestor of the manifest. All ancestors have lower
// generations.
func (r historyRules) forked(s *historyState, manifest set) (yes bool) {
	least := generation(manifest)
	if r.newerOnly {
		least++
	}
	s.copies.without(set(1) << manifest).each(func(c int) { yes = yes || generation(set(c)) >= least && !r.blind })
	return yes
}

// acknowledged returns the committers whose commit was acknowledged.
func (s *historyState) acknowledged() (l set) {
	for i := range s.committer {
		if c := &s.committer[i]; c.phase == done && !c.refused {
			l = l.with(i)
		}
	}
	return l
}

// check: an acknowledged commit contains all commits that were acknowledged before it began, and
// without a restore it is still in the manifest.
func (r historyRules) check(s *historyState) error {
	for i := range s.committer {
		c := &s.committer[i]
		if c.refused && !s.restored {
			return fmt.Errorf("P7: commit %d was refused, and nothing had been put back", i)
		}
		if c.phase != done || c.refused {
			continue
		}
		if lost := c.prior.without(c.base); lost != 0 {
			return fmt.Errorf("P7: commit %d was acknowledged on a manifest without commit %d, which was acknowledged before it began", i, lost.first())
		}
		if !s.restored && !s.manifest.has(i) {
			return fmt.Errorf("P7: acknowledged commit %d is lost", i)
		}
	}
	return nil
}

func (s *historyState) describe() string {
	return fmt.Sprintf("| manifest %03b, copies %08b, acknowledged %03b", s.manifest, s.copies, s.acknowledged())
}

func (r historyRules) system() system[historyState] {
	return system[historyState]{initial: historyState{was: 1}, next: r.next, check: r.check, describe: (*historyState).describe}
}

func TestHistory(t *testing.T) {
	for _, tc := range []struct {
		name, promise string
		rules         historyRules
	}{
		{"all rules", "", historyRules{}},
		{"all rules, an older manifest is put back", "", historyRules{restores: true}},
		{"the old protocol: the store ignores If-Match", "P7", historyRules{ignoresIfMatch: true, blind: true, predecessors: true}},
		{"the old protocol: an older manifest is put back", "P7", historyRules{restores: true, blind: true, predecessors: true}},
		{"rejected: copies of predecessors alone do not show that the last commit is gone", "P7", historyRules{restores: true, predecessors: true}},
		{"rejected: a newer copy is looked for, not another of the same generation", "P7", historyRules{restores: true, newerOnly: true}},
	} {
		t.Run(tc.name, func(t *testing.T) { verdict(t, tc.promise, tc.rules.system()) })
	}
}
