package plan

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// hiddenAnnotations is the reason not to push an operation whose result does not show whether its
// input had the values for which upstream adds an annotation.
const hiddenAnnotations = "its annotations depend on series that the result does not show"

// note is an annotation that upstream adds if at least one of certain series has a value at any
// step.
type note struct {
	err    error
	always bool // upstream adds it whatever has a value
	// the series are those of this leaf, at any node above it; nil: those of the node
	leaf *Leaf
	on   []uint32 // ordinals of the series, ascending
}

// independent reports whether the note does not depend on the values of its node.
func (n *note) independent() bool { return n.always || n.leaf != nil }

// independentNotes returns the notes for a node whose values do not show which of its inputs had a
// value. If a note depends on that, it returns the reason not to push the node.
func (s *Shape) independentNotes() ([]note, string) {
	for i := range s.notes {
		if !s.notes[i].independent() {
			return nil, hiddenAnnotations
		}
	}
	return s.notes, ""
}

// grouped returns the notes for a node of n outputs. Each output must have a value exactly at the
// steps at which an input that feeds it has one.
func (s *Shape) grouped(feeds []uint32, n int) ([]note, string) {
	var out []note
	for _, in := range s.notes {
		if in.independent() {
			out = append(out, in)
			continue
		}
		on, ok := image(in.on, feeds, n)
		if !ok {
			return nil, hiddenAnnotations
		}
		out = append(out, note{err: in.err, on: on})
	}
	return out, ""
}

// image returns the outputs of the ordinals in on; feeds has the output of each ordinal. It returns
// false if another ordinal has one of these outputs, or if one of on has none.
func image(on, feeds []uint32, n int) ([]uint32, bool) {
	const mixed, some = 1, 2
	state := make([]byte, n)
	member := make([]bool, len(feeds))
	for _, i := range on {
		member[i] = true
		if feeds[i] == vector.NoOrdinal {
			return nil, false
		}
	}
	for i, o := range feeds {
		switch {
		case o == vector.NoOrdinal:
		case member[i]:
			state[o] |= some
		default:
			state[o] |= mixed
		}
	}
	var out []uint32
	for o, st := range state {
		if st == some|mixed {
			return nil, false
		}
		if st == some {
			out = append(out, uint32(o))
		}
	}
	return out, true
}

// nonCounters returns the infos for rate() and increase() of series whose metric names do not look
// like those of counters: upstream adds one for each such name that has a result.
// Source: the end of the evaluation of range functions in upstream's promql/engine.go.
func nonCounters(series []Series, pos posrange.PositionRange) []note {
	var out []note
	at := map[string]int{}
	for i, s := range series {
		name := s.Labels.Get(model.MetricNameLabel)
		counter := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
		if name == "" || slices.ContainsFunc([]string{"_total", "_sum", "_count", "_bucket"}, counter) {
			continue
		}
		j, ok := at[name]
		if !ok {
			j = len(out)
			at[name] = j
			out = append(out, note{err: annotations.NewPossibleNonCounterInfo(name, pos)})
		}
		out[j].on = append(out[j].on, uint32(i))
	}
	return out
}

// all returns the ordinals from 0 to n-1.
func all(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// Annotations returns the annotations that upstream adds for the subtree. present[i] is true if
// ordinal i of Labels has a value at any step. raised holds what Raise added for the leaves of the
// subtree, or for those of all its parts.
func (p *Pushed) Annotations(present []bool, raised Raised) annotations.Annotations {
	var out annotations.Annotations
	for _, n := range p.Root.Shape().notes {
		if n.always || n.leaf != nil && raised[n.key()] || n.leaf == nil && anyOf(n.on, present) {
			out.Add(n.err)
		}
	}
	return out
}

// Raised is the set of annotations that the values of leaves raise.
type Raised map[annotation]bool

// annotation identifies an annotation by its text and its selector. The selector is the same in all
// parts of a subtree.
type annotation struct {
	selector *parser.VectorSelector
	text     string
}

func (n *note) key() annotation { return annotation{n.leaf.Selector.Expr, n.err.Error()} }

// Raise adds to into the annotations that the values of leaves raise. present is parallel to
// Leaves: the ordinals of each leaf's series that have a value at any step.
func (p *Pushed) Raise(present [][]uint32, into Raised) {
	for _, n := range p.Root.Shape().notes {
		k := slices.Index(p.Leaves, n.leaf)
		if k < 0 {
			continue
		}
		has := make([]bool, len(n.leaf.shape.Labels))
		for _, i := range present[k] {
			has[i] = true
		}
		if anyOf(n.on, has) {
			into[n.key()] = true
		}
	}
}

// reads reports whether leaves contains the leaves of all notes.
func (s *Shape) reads(leaves []*Leaf) bool {
	return !slices.ContainsFunc(s.notes, func(n note) bool { return n.leaf != nil && !slices.Contains(leaves, n.leaf) })
}

func anyOf(on []uint32, present []bool) bool {
	for _, i := range on {
		if present[i] {
			return true
		}
	}
	return false
}
