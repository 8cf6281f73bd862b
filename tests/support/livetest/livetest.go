// Package livetest has the cases that every implementation of package live's rules answers: the
// packages of both stages, the C aggregate, the Python package and the SQL macros. Those that are
// not Go read cases.json.
package livetest

import (
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Case is a history of one series and the samples that count at its end.
type Case struct {
	Name  string `json:"name"`
	Steps []Step `json:"steps"`
	Want  []Want `json:"want"` // ascending times
	// Undeleted is Want for readers that do not apply tombstones.
	Undeleted []Want `json:"undeleted"`
}

// Step writes an object, of a higher rank than all before it, or deletes from all objects that are
// there. Times are ms. Every float has the position of its step as its value, and every histogram
// as its count.
type Step struct {
	Floats []int64   `json:"floats,omitempty"` // ascending
	Stale  []int64   `json:"stale,omitempty"`  // stale markers among the floats, ascending
	Hists  []int64   `json:"hists,omitempty"`  // ascending
	Delete *[2]int64 `json:"delete,omitempty"` // inclusive; nil: the step writes
}

// Want is a sample that counts.
type Want struct {
	T    int64  `json:"t"`
	Step int    `json:"step"` // that wrote it
	Kind string `json:"kind"` // float, stale or hist
}

//go:embed cases.json
var cases []byte

// Cases returns all cases.
func Cases(tb testing.TB) (out []Case) {
	tb.Helper()
	require.NoError(tb, json.Unmarshal(cases, &out))
	require.Greater(tb, len(out), 20)
	return out
}

// HasHists reports whether a step writes histograms.
func (c *Case) HasHists() bool {
	for _, s := range c.Steps {
		if len(s.Hists) > 0 {
			return true
		}
	}
	return false
}
