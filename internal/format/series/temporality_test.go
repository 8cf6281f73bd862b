package series

import (
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
)

func TestHas(t *testing.T) {
	require.True(t, IsDelta(labels.FromStrings("__name__", "x", TemporalityLabel, DeltaTemporality)))
	require.False(t, IsDelta(labels.FromStrings("__name__", "x", TemporalityLabel, "cumulative")))
	require.False(t, IsDelta(labels.FromStrings("__name__", "x")))
}

func TestChains(t *testing.T) {
	for name, tc := range map[string]struct {
		t, st  []int64
		passed map[int]bool
		want   []Chain
	}{
		"no points": {},
		"one counter, from its beginning": {
			t: []int64{120, 130, 140}, st: []int64{110, 120, 130},
			want: []Chain{{To: 3, Start: 110}},
		},
		"one counter that is older": {
			t: []int64{120, 130}, st: []int64{100, 120},
			want: []Chain{{To: 2, Start: 100, Older: true}},
		},
		"nothing is known of starts": {
			t:    []int64{120, 130},
			want: []Chain{{To: 2, Older: true}},
		},
		"gaps": {
			t: []int64{120, 130, 150, 160}, st: []int64{110, 121, 130, 155},
			want: []Chain{{To: 1, Start: 110}, {From: 1, To: 3, Start: 121}, {From: 3, To: 4, Start: 155}},
		},
		"starts that are unknown, wrong, or before the end of the point before": {
			t: []int64{120, 130, 140, 150, 160}, st: []int64{110, 0, 140, 170, 145},
			want: []Chain{{To: 5, Start: 110}},
		},
		"points that count nothing": {
			t: []int64{110, 120, 130, 140, 150}, st: []int64{0, 115, 0, 120, 0},
			passed: map[int]bool{0: true, 2: true, 4: true},
			want:   []Chain{{To: 5, Start: 115}},
		},
		"nothing but those": {t: []int64{110}, passed: map[int]bool{0: true}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, tc.want, Chains(tc.t, tc.st, 100, func(i int) bool { return tc.passed[i] }))
		})
	}
}
