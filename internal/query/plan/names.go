package plan

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/schema"
)

// duplicates is the reason for not pushing an operation two of whose results would have the same
// labels: whether upstream fails depends on whether both have a value at one step.
const duplicates = "two series would have the same labels"

// distinct tells whether no two label sets are equal.
func distinct(ls []labels.Labels) bool {
	seen := make(map[uint64]struct{}, len(ls))
	for _, l := range ls {
		seen[l.Hash()] = struct{}{} // equal hashes are equal labels for upstream, too
	}
	return len(seen) == len(ls)
}

// withoutNames returns the labels of the results of an operation that drops metric names from those
// of its input, and whose name is still to be dropped.
func (b *building) withoutNames(in *Shape) (ls []labels.Labels, drop []bool, reason string) {
	if b.options.DelayedNames {
		return in.Labels, dropAll(in.Labels), ""
	}
	ls = stripNames(in.Labels)
	if !sameNames(in.Labels) && !distinct(ls) {
		return nil, nil, duplicates
	}
	return ls, nil, ""
}

// sameNames tells whether all label sets have the same name: if they are distinct, they are so
// without it.
func sameNames(ls []labels.Labels) bool {
	for _, name := range []string{model.MetricNameLabel, model.MetricTypeLabel, model.MetricUnitLabel} {
		for i := 1; i < len(ls); i++ {
			if ls[i].Get(name) != ls[0].Get(name) {
				return false
			}
		}
	}
	return true
}

// stripNames drops the metric name (and the labels that describe it) from every label set.
func stripNames(in []labels.Labels) []labels.Labels {
	out := make([]labels.Labels, len(in))
	for i, l := range in {
		out[i] = l.DropReserved(schema.IsMetadataLabel)
	}
	return out
}

// dropAll returns the flags of results whose names are to be dropped at the end of the query.
func dropAll(ls []labels.Labels) []bool {
	drop := make([]bool, len(ls))
	some := false
	for i, l := range ls {
		drop[i] = named(l)
		some = some || drop[i]
	}
	if !some {
		return nil
	}
	return drop
}

// named tells whether a label set has something that dropping the name would drop.
func named(l labels.Labels) bool {
	return l.Has(model.MetricNameLabel) || l.Has(model.MetricTypeLabel) || l.Has(model.MetricUnitLabel)
}

// consumer is what the engine does with the value of a pushed subtree.
type consumer int

const (
	// seesNames evaluates labels that may include a name which is to be dropped only at the end of
	// the query.
	seesNames consumer = iota
	// overridesNames gives the same result whether names of its input are to be dropped or not.
	overridesNames
	// endOfQuery drops the names that are to be dropped.
	endOfQuery
)

// handOver returns the labels with which the engine gets a subtree's values: it cannot be told that
// a name is to be dropped later.
func handOver(s *Shape, to consumer) (ls []labels.Labels, reason string) {
	if s.Drop == nil || to == overridesNames {
		return s.Labels, ""
	}
	if to == seesNames {
		return nil, "the engine would see metric names that are to be dropped"
	}
	ls = make([]labels.Labels, len(s.Labels))
	for i, l := range s.Labels {
		if ls[i] = l; s.Drop[i] {
			ls[i] = l.DropReserved(schema.IsMetadataLabel)
		}
	}
	if !distinct(ls) {
		return nil, duplicates
	}
	return ls, ""
}
