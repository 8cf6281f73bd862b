package plan

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// matched assigns keys to the series of two sides. Series with equal keys match: a key numbers a
// signature.
type matched struct {
	left, right side
}

// side is one side of a match.
type side struct {
	keys    []uint32   // the key of each series
	members [][]uint32 // the series of each key, ascending
}

// matchSeries matches the series of two sides.
func matchSeries(m *parser.VectorMatching, left, right []labels.Labels) matched {
	// Source: evaluator.rangeEval in upstream's promql/engine.go.
	names := slices.Clone(m.MatchingLabels)
	if !m.On {
		names = append(names, model.MetricNameLabel)
	}
	slices.Sort(names)
	numbers, key := numbering{}, []byte(nil)
	keysOf := func(series []labels.Labels) []uint32 {
		keys := make([]uint32, len(series))
		for i, l := range series {
			if m.On {
				key = l.BytesWithLabels(key, names...)
			} else {
				key = l.BytesWithoutLabels(key, names...)
			}
			keys[i], _ = numbers.of(key)
		}
		return keys
	}
	l, r := keysOf(left), keysOf(right)
	return matched{left: newSide(l, len(numbers)), right: newSide(r, len(numbers))}
}

// newSide returns a side with keys below n.
func newSide(keys []uint32, n int) side {
	s := side{keys: keys, members: make([][]uint32, n)}
	for i, k := range keys {
		s.members[k] = append(s.members[k], uint32(i))
	}
	return s
}

// meets reports whether any two series match.
func (m matched) meets() bool {
	for k, l := range m.left.members {
		if len(l) > 0 && len(m.right.members[k]) > 0 {
			return true
		}
	}
	return false
}

// shared returns the key of each series, or vector.NoOrdinal if no series of the other side has that
// key.
func (s side) shared(other side) []uint32 {
	out := slices.Clone(s.keys)
	for i, k := range out {
		if len(other.members[k]) == 0 {
			out[i] = vector.NoOrdinal
		}
	}
	return out
}

// clashes reports whether two series with the same key may have a value at the same step. With
// other, only keys that other has count. class[i] is the class of series i; nil: every series has
// its own.
func (s side) clashes(class []uint32, other *side) bool {
	for k, m := range s.members {
		if len(m) < 2 || other != nil && len(other.members[k]) == 0 {
			continue
		}
		if class == nil || slices.ContainsFunc(m, func(i uint32) bool { return class[i] != class[m[0]] }) {
			return true
		}
	}
	return false
}

// unique reports whether no two series have the same key.
func (s side) unique() bool {
	return !slices.ContainsFunc(s.members, func(m []uint32) bool { return len(m) > 1 })
}

// classes returns the class of each series of a node. At most one series of a class has a value at
// a step. nil: every series has its own class.
func classes(n Node) []uint32 {
	switch n := n.(type) {
	case *topNode:
		if n.k == 1 {
			return n.to
		}
	case *mathNode:
		return classes(n.in)
	case *scaleNode:
		in, _ := n.operands()
		return classes(in)
	case *labelNode:
		return classes(n.in)
	case *orNode:
		out := all(len(n.shape.Labels))
		left, right := byKey(n.lk), byKey(n.rk)
		for k, l := range left {
			if r := right[k]; len(l) == 1 && len(r) == 1 {
				out[n.to[r[0]]] = l[0]
			}
		}
		return out
	}
	return nil
}

// class returns the class of series i, given the result of classes.
func class(of []uint32, i uint32) uint32 {
	if of == nil {
		return i
	}
	return of[i]
}
