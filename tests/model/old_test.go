package model

import "testing"

// The old protocol orders by machine clocks: a segment's identifier is from its writer's clock, a
// tombstone's from the clock of the deleting process but above all in the manifest, and a tombstone
// applies to objects with lower identifiers.
var (
	once = writeSpec{mode: queued, copies: 1}
	late = writeSpec{mode: queued, copies: 2} // delivered twice
	put  = writeSpec{mode: grouped}
	at1  = writeSpec{mode: grouped, point: 1}
)

func oldClocks(writers, compactors, deleters []int8) rules {
	return rules{old: clocks{writers, compactors, deleters}}
}

func TestOldProtocol(t *testing.T) {
	exact := []int8{0}
	for _, tc := range []struct {
		promise string
		scenario
	}{
		{"P2/P4", scenario{name: "a compactor's clock is ahead: writes after a deletion vanish",
			writes: []writeSpec{at1, put}, dels: []uint8{1}, compactors: 1, merges: 1, ticks: 2, rules: oldClocks(exact, []int8{3}, exact)}},
		{"P1", scenario{name: "a writer's clock is ahead: its write survives a deletion for good",
			writes: []writeSpec{put}, dels: []uint8{1}, compactors: 1, merges: 1, ticks: 2, forGood: true, rules: oldClocks([]int8{0, 3}, exact, exact)}},
		{"P5", scenario{name: "a message is redelivered: deleted data returns",
			writes: []writeSpec{late}, dels: []uint8{1}, ticks: 2, age: 3, rules: oldClocks(exact, exact, exact)}},
		{"P3", scenario{name: "a message is redelivered: an older value overtakes a newer one",
			writes: []writeSpec{late, put}, ticks: 2, age: 3, rules: oldClocks(exact, exact, exact)}},
		{"P2/P4", scenario{name: "direct mode: identifiers are rounded into the past, and writes after a deletion vanish",
			writes: []writeSpec{put}, dels: []uint8{1}, ticks: 3, rules: oldClocks([]int8{-2}, exact, exact)}},
		{"P3", scenario{name: "a writer's clock is behind: its newer value loses",
			writes: []writeSpec{put, put}, ticks: 3, rules: oldClocks([]int8{0, -2}, exact, exact)}},
	} {
		t.Run(tc.name, func(t *testing.T) { breaks(t, tc.promise, tc.scenario) })
	}
}
