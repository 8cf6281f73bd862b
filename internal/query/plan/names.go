package plan

import (
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/schema"
)

// duplicates is the reason not to push an operation that may return two series with the same
// labels: upstream fails only if both have a value at the same step.
const duplicates = "two series would have the same labels"

// distinct reports whether no two label sets are equal.
func distinct(ls []labels.Labels) bool {
	seen := make(map[uint64]struct{}, len(ls))
	for _, l := range ls {
		seen[l.Hash()] = struct{}{} // like upstream, it treats equal hashes as equal labels
	}
	return len(seen) == len(ls)
}

// withoutNames returns the labels of an operation that drops metric names. With delayed name
// removal the names stay, and drop marks those to drop at the end of the query.
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

// sameNames reports whether all label sets have the same name. Distinct label sets stay distinct
// without a name that they share.
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

// dropAll returns flags that mark every label set with a name to be dropped at the end of the
// query; nil if there is none.
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

// named reports whether dropping the metric name would change a label set.
func named(l labels.Labels) bool {
	return l.Has(model.MetricNameLabel) || l.Has(model.MetricTypeLabel) || l.Has(model.MetricUnitLabel)
}

// handOver returns the labels that the engine gets for a subtree's values. The engine has no way to
// drop a name of such values later, so the subtree is not pushed if it has such names, unless it is
// the whole query: then they are dropped now.
func handOver(s *Shape, whole bool) (ls []labels.Labels, reason string) {
	switch {
	case s.Drop == nil:
		return s.Labels, ""
	case !whole:
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

// unite drops the names of a node's series, and merges those that then have the same labels. It
// returns false unless these are of the same class: at most one of them has a value at a step, so
// that every aggregate that keeps it returns the same.
func unite(in Node) (Node, bool) {
	of := classes(in)
	if of == nil {
		return nil, false
	}
	n := &groupNode{unary: unary{shaped: shaped{Shape{Grid: in.Shape().Grid}}, in: in}, titled: titled{"unite"}, op: "max", to: make([]uint32, len(of))}
	first := map[uint64]int{}
	for i, l := range stripNames(in.Shape().Labels) {
		j, again := first[l.Hash()]
		switch {
		case !again:
			first[l.Hash()] = i
			n.to[i] = uint32(len(n.shape.Labels))
			n.shape.Labels = append(n.shape.Labels, l)
		case of[i] != of[j]:
			return nil, false
		default:
			n.to[i] = n.to[j]
		}
	}
	var reason string
	n.shape.notes, reason = in.Shape().grouped(n.to, len(n.shape.Labels))
	return n, reason == ""
}

// nameless returns a node without metric names, merged by unite if necessary, or a reason not to
// push. With delayed names the node is unchanged: the names are dropped at the end of the query.
func (b *building) nameless(in Node) (node Node, ls []labels.Labels, drop []bool, reason string) {
	ls, drop, reason = b.withoutNames(in.Shape())
	if reason != duplicates {
		return in, ls, drop, reason
	}
	if n, ok := unite(in); ok {
		return n, n.Shape().Labels, nil, ""
	}
	return nil, nil, nil, duplicates
}
