package plan

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

// hidden is the reason for not pushing an operation after which nobody can tell whether upstream
// would have annotated its input.
const hidden = "its annotations depend on series that the result does not show"

// note is an annotation that upstream gives if one of some series has a value at any step.
type note struct {
	err    error
	always bool     // whatever has a value
	leaf   *Leaf    // whose series those are, whatever becomes of them; nil: the node's
	on     []uint32 // the ordinals, ascending
}

// told says that the values of the node that has the note do not matter to it.
func (n *note) told() bool { return n.always || n.leaf != nil }

// sure returns the notes for a node whose values do not tell which of its input had any. One that
// depends on that is a reason not to push it.
func (s *Shape) sure() ([]note, string) {
	for i := range s.notes {
		if !s.notes[i].told() {
			return nil, hidden
		}
	}
	return s.notes, ""
}

// grouped returns the notes for a node of n outputs each of which has a value exactly where some
// input that feeds it has one.
func (s *Shape) grouped(feeds []uint32, n int) ([]note, string) {
	var out []note
	for _, in := range s.notes {
		if in.told() {
			out = append(out, in)
			continue
		}
		on, ok := image(in.on, feeds, n)
		if !ok {
			return nil, hidden
		}
		out = append(out, note{err: in.err, on: on})
	}
	return out, ""
}

// image returns the outputs that the ordinals in on feed, if nothing else feeds them.
func image(on, feeds []uint32, n int) ([]uint32, bool) {
	const mixed, some = 1, 2
	state := make([]byte, n)
	member := make([]bool, len(feeds))
	for _, i := range on {
		member[i] = true
		if feeds[i] == ordinals.None {
			return nil, false
		}
	}
	for i, o := range feeds {
		switch {
		case o == ordinals.None:
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

// nonCounters returns the infos about the series of a rate or an increase whose metric names do not
// look like a counter's: upstream gives one for each name that some result comes from.
// Source: the end of the evaluation of range functions in upstream's promql/engine.go.
func nonCounters(series []Series, pos posrange.PositionRange) []note {
	var out []note
	at := map[string]int{}
	for i, s := range series {
		name := s.Labels.Get(model.MetricNameLabel)
		if name == "" || counterName(name) {
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

func counterName(name string) bool {
	for _, suffix := range []string{"_total", "_sum", "_count", "_bucket"} {
		if strings.HasSuffix(name, suffix) {
			return true
		}
	}
	return false
}

// all returns the ordinals below n.
func all(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// Annotations returns what upstream would have said about the subtree. present says which ordinals
// of Labels have a value at any step; heard is what Hear made of all leaves, or of those of all
// parts.
func (p *Pushed) Annotations(present []bool, heard Heard) annotations.Annotations {
	var out annotations.Annotations
	for _, n := range p.Root.Shape().notes {
		if n.always || n.leaf != nil && heard[n.heard()] || n.leaf == nil && anyOf(n.on, present) {
			out.Add(n.err)
		}
	}
	return out
}

// Heard are the annotations that the values of leaves give rise to.
type Heard map[heard]bool

// heard names an annotation by the selector that it is about, which stands at one place and in all
// parts of a subtree, and its text.
type heard struct {
	selector *parser.VectorSelector
	text     string
}

func (n *note) heard() heard { return heard{n.leaf.Selector.Expr, n.err.Error()} }

// Hear adds what the values of the leaves give rise to. present are, parallel to Leaves, the
// ordinals of the series that have a value at any step.
func (p *Pushed) Hear(present [][]uint32, into Heard) {
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
			into[n.heard()] = true
		}
	}
}

// reads tells whether the leaves of all notes are among some.
func (s *Shape) reads(leaves []*Leaf) bool {
	for _, n := range s.notes {
		if n.leaf != nil && !slices.Contains(leaves, n.leaf) {
			return false
		}
	}
	return true
}

func anyOf(on []uint32, present []bool) bool {
	for _, i := range on {
		if present[i] {
			return true
		}
	}
	return false
}
