package model

import "testing"

// TestRejected explores rules that were proposed and do not hold. docs/model.md describes the rules
// that replaced them.
func TestRejected(t *testing.T) {
	again := []writeSpec{{mode: direct}, {mode: direct, same: 1}}
	overwritten := []writeSpec{{mode: direct}, put, {mode: direct, same: 1}}
	for _, tc := range []struct {
		promise string
		scenario
	}{
		{"P3", scenario{name: "a deletion lists, then reads the manifest: an overwritten value comes back",
			writes: first, dels: []uint8{1}, compactors: 2, merges: 2, rules: rules{cover: listingFirst}}},
		{"P5", scenario{name: "a deletion covers what was sent before it began: a redelivered message comes back",
			writes: []writeSpec{late}, dels: []uint8{1}, compactors: 1, merges: 2, ticks: 3, age: 1, rules: rules{cover: timeFirst}}},
		{"P3", scenario{name: "a tenant with a queue and with puts: a deletion covers the newer of two writes alone",
			writes: []writeSpec{late, put}, dels: []uint8{1}, compactors: 1, merges: 2, ticks: 3, age: 1}},
		{"P2/P4", scenario{name: "direct: a put under the content's name that is there is not looked at",
			writes: again, dels: []uint8{1}, compactors: 1, merges: 2, rules: rules{names: derivedBlind}}},
		{"P3", scenario{name: "direct: the content's name is there, and its value was overwritten since",
			writes: overwritten, dels: []uint8{1}, compactors: 1, merges: 2, rules: rules{names: derived}}},
		{"P2/P4", scenario{name: "direct: the content's name is put again while the manifest says that it is consumed",
			writes: again, dels: []uint8{1}, compactors: 1, merges: 2, collectors: 1, rules: rules{names: derived}}},
		{"P2/P4", scenario{name: "direct: a slow writer looks when the manifest has forgotten the content's name",
			writes: again, dels: []uint8{1}, compactors: 1, merges: 2, collectors: 1, rules: rules{names: derivedChecked}}},
		{"P3", scenario{name: "direct: likewise, if it also looks for newer objects",
			writes: overwritten, dels: []uint8{1}, compactors: 1, merges: 2, collectors: 1, rules: rules{names: derivedRepeated}}},
	} {
		t.Run(tc.name, func(t *testing.T) { breaks(t, tc.promise, tc.scenario) })
	}
}
