package model

import (
	"os"
	"testing"
)

var first = []writeSpec{put, put}

// scenarios are systems that keep all rules.
var scenarios = []scenario{
	{name: "two deletions of one point", writes: first, dels: []uint8{1, 1}, compactors: 2, merges: 2},
	{name: "two deletions of two points", writes: []writeSpec{put, at1}, dels: []uint8{1, 2}, compactors: 1, merges: 3},
	{name: "three writes", writes: []writeSpec{put, put, put}, dels: []uint8{1}, compactors: 1, merges: 3},
	{name: "another point between", writes: []writeSpec{put, at1, put}, dels: []uint8{1}, compactors: 2, merges: 2},
	{name: "a reader that takes its time", writes: first, dels: []uint8{1}, compactors: 2, merges: 3, reader: true},
	{name: "direct, the same content twice", writes: []writeSpec{{mode: direct}, {mode: direct, same: 1}, put}, dels: []uint8{1}, compactors: 1, merges: 2},

	{name: "queue, redelivery", writes: []writeSpec{late, once}, dels: []uint8{1}, compactors: 1, merges: 1, ticks: 3, age: 1},
	{name: "queue, a reader that takes its time", writes: []writeSpec{late}, dels: []uint8{1}, compactors: 1, merges: 2, ticks: 3, age: 1, reader: true},
	{name: "queue, two deletions", writes: []writeSpec{late}, dels: []uint8{1, 1}, compactors: 1, merges: 2, ticks: 3, age: 1},
	{name: "queue, late messages", writes: []writeSpec{once, {mode: queued, point: 1, copies: 1}, once}, compactors: 2, merges: 2, age: 1},
	{name: "queue, batches", writes: []writeSpec{{mode: queued, copies: 1}, {mode: queued, point: 1}}, batches: []set{3, 3}, dels: []uint8{3}, compactors: 1, merges: 2, ticks: 3, age: 1},

	{name: "a queue, and puts of another point", writes: []writeSpec{late, at1}, dels: []uint8{3}, compactors: 1, merges: 2, ticks: 3, age: 1},

	{name: "times with ticks, a deletion", writes: first, dels: []uint8{1}, compactors: 1, merges: 3, ticks: 2, rules: rules{coarse: true}},
	{name: "times with ticks, a queue", writes: []writeSpec{once, once}, dels: []uint8{1}, compactors: 1, merges: 1, ticks: 2, age: 1, rules: rules{coarse: true}},
	{name: "slow puts, a deletion", writes: first, dels: []uint8{1}, compactors: 1, merges: 2, ticks: 2, slow: 1, rules: rules{coarse: true}},

	{name: "cover by time", writes: first, dels: []uint8{1}, compactors: 2, merges: 2, ticks: 2, rules: rules{cover: byTime}},
	{name: "cover by time, a queue and puts", writes: []writeSpec{late, put}, dels: []uint8{1}, compactors: 1, merges: 2, ticks: 3, age: 1, rules: rules{cover: byTime}},
}

// large are scenarios that take minutes and gigabytes.
var large = []scenario{
	{name: "three writes, two deletions", writes: []writeSpec{put, put, put}, dels: []uint8{1, 1}, compactors: 1, merges: 3},
	{name: "two deletions, three merges", writes: first, dels: []uint8{1, 1}, compactors: 2, merges: 3},
	{name: "two deletions of two points, two compactors", writes: []writeSpec{put, at1}, dels: []uint8{1, 2}, compactors: 2, merges: 3},
	{name: "three writes, two compactors, a reader", writes: []writeSpec{put, at1, put}, dels: []uint8{1}, compactors: 2, merges: 2, reader: true},
	{name: "four writes", writes: []writeSpec{put, at1, put, at1}, dels: []uint8{1}, compactors: 1, merges: 3},
	{name: "queue, two compactors", writes: []writeSpec{late}, dels: []uint8{1}, compactors: 2, merges: 3, ticks: 3, age: 1},
	{name: "queue, redelivery, two merges", writes: []writeSpec{late, once}, dels: []uint8{1}, compactors: 1, merges: 2, ticks: 3, age: 1, reader: true},
	{name: "cover by time, a queue and puts, two deletions", writes: []writeSpec{once, put}, dels: []uint8{1, 1}, compactors: 1, merges: 2, ticks: 3, age: 1, rules: rules{cover: byTime}},
}

// exploreLarge enables the large scenarios.
var exploreLarge = os.Getenv("PROMLAKE_MODEL_LARGE") != ""

// TestProtocol explores systems that keep all rules: no promise is broken in any state.
func TestProtocol(t *testing.T) {
	all := scenarios
	if exploreLarge {
		all = append(all, large...)
	}
	for _, sc := range all {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			holds(t, sc)
		})
	}
}
