package model

import "testing"

// TestMutations leaves out one rule at a time. Each must break a promise in a scenario that keeps
// it otherwise.
func TestMutations(t *testing.T) {
	one := scenario{name: "one", writes: []writeSpec{put}, dels: []uint8{1}, compactors: 1, merges: 2}
	two := scenario{name: "two", writes: []writeSpec{put, put}, dels: []uint8{1}, compactors: 2, merges: 2}
	points := scenario{name: "points", writes: []writeSpec{put, at1}, dels: []uint8{1, 2}, compactors: 1, merges: 2}
	filled := scenario{name: "filled", writes: []writeSpec{put, at1, put}, compactors: 2, merges: 2}
	again := scenario{name: "again", writes: []writeSpec{put}, dels: []uint8{1, 1}, compactors: 2, merges: 2}
	queue := scenario{name: "queue", writes: []writeSpec{late}, dels: []uint8{1}, compactors: 1, merges: 2, ticks: 3, age: 1}
	batches := scenario{name: "batches", writes: []writeSpec{{mode: queued}, {mode: queued, point: 1}}, batches: []set{3}, dels: []uint8{3}, compactors: 1, merges: 1, ticks: 3, age: 2}
	coarse := scenario{name: "coarse", writes: []writeSpec{put, at1, put}, compactors: 2, merges: 2, ticks: 2, rules: rules{coarse: true}}
	times := scenario{name: "times", writes: []writeSpec{put}, dels: []uint8{1}, compactors: 1, merges: 1, ticks: 2, rules: rules{cover: byTime}}
	slow := scenario{name: "slow", writes: []writeSpec{put, at1, put}, compactors: 1, merges: 1, ticks: 3, slow: 1, rules: rules{coarse: true}}
	slowTimes := scenario{name: "slowTimes", writes: []writeSpec{put}, dels: []uint8{1}, compactors: 1, merges: 1, ticks: 3, slow: 1, rules: rules{coarse: true, cover: byTime}}
	twice := scenario{name: "twice", writes: []writeSpec{late, once}, ticks: 2, age: 2}
	for _, sc := range []scenario{one, two, points, filled, again, queue, batches, coarse, times, slow, slowTimes, twice} {
		t.Run(sc.name, func(t *testing.T) { holds(t, sc) })
	}
	for _, tc := range []struct {
		name    string
		promise string
		sc      scenario
		leave   func(*rules)
	}{
		{"a deletion seals nothing", "P1", one, func(r *rules) { r.noListing = true }},
		{"a deletion commits over a manifest that it has not read", "P3", two, func(r *rules) { r.noSwap = true }},
		{"a later deletion seals again", "P5", points, func(r *rules) { r.sealAgain = true }},
		{"numbers of tombstones are used again", "P5", again, func(r *rules) { r.reuseNumbers = true }},
		{"a deletion lists before it reads the manifest", "P3", two, func(r *rules) { r.cover = listingFirst }},
		{"a deletion asks the queue's time before it reads the manifest", "P5", queue, func(r *rules) { r.cover = timeFirst }},
		{"a deletion rounds the queue's time down", "P5", queue, func(r *rules) { r.roundDown = true }},
		{"a deletion does not wait for the queue's time to pass", "P2/P4", queue, func(r *rules) { r.noWait = true }},
		{"a deletion does not wait for the store's time to pass", "P2/P4", times, func(r *rules) { r.noWait = true }},

		{"a merge applies every tombstone to every source", "P2/P4", one, func(r *rules) { r.applyAll = true }},
		{"a commit takes sources that are not live", "P5", two, func(r *rules) { r.noSourceCheck = true }},
		{"a commit ignores tombstones that came after its read", "P2/P4", one, func(r *rules) { r.noTombstoneCheck = true }},
		{"deletes_through is that of the commit", "P5", one, func(r *rules) { r.throughAtCommit = true }},
		{"merges take sources that are not neighbours", "P3", filled, func(r *rules) { r.anySources = true }},
		{"merges take blocks that are newer than their listing", "P3", filled, func(r *rules) { r.newBlocks = true }},
		{"merges take segments of the tick of the listing", "P3", coarse, func(r *rules) { r.unsettled = true }},
		{"merges take no account of slow puts", "P3", slow, func(r *rules) { r.hasty = true }},
		{"ties of the store's time", "P3", coarse, func(r *rules) { r.tied = true }},
		{"tombstones are dropped at once", "P5", one, func(r *rules) { r.dropAtOnce = true }},
		{"tombstones are dropped while unsealed messages' segments are live", "P5", queue, func(r *rules) { r.dropUnlisted = true }},
		{"tombstones are dropped while messages may be delivered", "P5", queue, func(r *rules) { r.dropYoung = true }},
		{"tombstones are dropped while puts of their time may come", "P5", times, func(r *rules) { r.dropYoung = true }},
		{"tombstones are dropped while slow puts of their time may come", "P5", slowTimes, func(r *rules) { r.dropHasty = true }},

		{"a redriven message gets a new send time", "P5", queue, func(r *rules) { r.resent = true }},
		{"a redriven message gets a new send time, and so a new rank", "P3", twice, func(r *rules) { r.resent = true }},
		{"a redelivered message gets a new rank", "P3", twice, func(r *rules) { r.mintAtConsume = true }},
		{"segments of messages are not marked", "P5", queue, func(r *rules) { r.unmarked = true }},
		{"a batch has the time of its newest message", "P1", batches, func(r *rules) { r.batch = batchNewest }},
		{"a batch has the time of its oldest message", "P2/P4", batches, func(r *rules) { r.batch = batchOldest }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.leave(&tc.sc.rules)
			breaks(t, tc.promise, tc.sc)
		})
	}
}
