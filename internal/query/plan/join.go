package plan

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/schema"

	"github.com/promlake/promlake/internal/query/duck/promsql"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// maxPairs bounds the pairs of series of a match whose one side has several candidates per key.
const maxPairs = 1 << 20

// joinNode applies an operator to the pairs of series that match.
type joinNode struct {
	binary
	titled
	op       string   // of prom_binary
	lk, rk   []uint32 // the keys to match on
	manyLeft bool
	// to is the output of each series of the "many" side (the left one, if both are "one").
	to []uint32
	// pairs, if not nil, replaces to: it holds the output of each pair of a left and a right
	// series. It is used if several series of the one side have a key, of which at most one has a
	// value at a step. merged: several pairs have one output.
	pairs  map[uint64]uint32
	merged bool
}

// compileJoin compiles arithmetic and comparisons between vectors.
// Source: VectorBinop in upstream's promql/engine.go.
func compileJoin(b *building, e *parser.BinaryExpr, l, r Node, at place) (Node, string) {
	m := e.VectorMatching
	if m.FillValues.LHS != nil || m.FillValues.RHS != nil {
		return nil, "fill modifiers are evaluated by the engine"
	}
	match := matchSeries(m, l.Shape().Labels, r.Shape().Labels)
	many, one, manyNode, oneNode := match.left, match.right, l, r
	if m.Card == parser.CardOneToMany {
		many, one, manyNode, oneNode = match.right, match.left, r, l
	}
	if one.clashes(classes(oneNode), nil) {
		return nil, "several series of the one side have the same matching labels"
	}
	if m.Card == parser.CardOneToOne && many.clashes(classes(manyNode), &one) {
		return nil, "several series of both sides have the same matching labels"
	}
	n := &joinNode{op: Operator(e, false), titled: titled{joinText(e)}, binary: binary{l: l, r: r}, manyLeft: m.Card != parser.CardOneToMany}
	n.lk, n.rk = match.left.shared(match.right), match.right.shared(match.left)
	lb := labels.NewBuilder(labels.EmptyLabels())
	strip := !e.Op.IsComparisonOperator() || e.ReturnBool && !b.options.DelayedNames
	p := pairing{many: many, one: one, manyNode: manyNode, oneNode: oneNode, labels: func(many, one labels.Labels) labels.Labels {
		// Source: resultMetric in upstream's promql/engine.go.
		lb.Reset(many)
		if strip {
			schema.Metadata{}.SetToLabels(lb)
		}
		if m.Card == parser.CardOneToOne {
			if m.On {
				lb.Keep(m.MatchingLabels...)
			} else {
				lb.Del(m.MatchingLabels...)
			}
		}
		for _, name := range m.Include {
			lb.Set(name, one.Get(name)) // an empty value removes the label
		}
		return lb.Labels()
	}}
	if reason := p.pair(n); reason != "" {
		return nil, reason
	}
	n.shape.Grid = at.grid()
	if e.ReturnBool {
		if drop := dropAll(n.shape.Labels); b.options.DelayedNames {
			n.shape.Drop = drop
		} else if drop != nil {
			return nil, "a label that describes the metric comes with group_left or group_right"
		}
	}
	var reason string
	n.shape.notes, reason = independentNotesOf(l, r)
	return n, reason
}

// pairing computes the outputs of a match.
type pairing struct {
	many, one         side
	manyNode, oneNode Node
	labels            func(many, one labels.Labels) labels.Labels
}

// output identifies an output. All pairs that produce it have the same key and classes.
type output struct {
	ordinal, key uint32
	many, one    uint32 // classes
}

// pair sets the outputs and labels of n, in the order of the many side. It returns a reason not to
// push if the outputs depend on the samples.
func (p *pairing) pair(n *joinNode) string {
	simple := p.one.unique()
	if !simple {
		n.pairs = map[uint64]uint32{}
	}
	manyClass, oneClass := classes(p.manyNode), classes(p.oneNode)
	seen := map[uint64]output{}
	n.to = make([]uint32, len(p.many.keys))
	for i, k := range p.many.keys {
		n.to[i] = vector.NoOrdinal
		for _, j := range p.one.members[k] {
			ls := p.labels(p.manyNode.Shape().Labels[i], p.oneNode.Shape().Labels[j])
			o := output{ordinal: uint32(len(n.shape.Labels)), many: class(manyClass, uint32(i)), one: class(oneClass, j), key: k}
			was, ok := seen[ls.Hash()]
			switch {
			case !ok:
				seen[ls.Hash()] = o
				n.shape.Labels = append(n.shape.Labels, ls)
			case was.many != o.many || was.one != o.one || was.key != k:
				return duplicates
			default: // at most one of the two pairs has a value at a step
				o, n.merged = was, true
			}
			if simple {
				n.to[i] = o.ordinal
				continue
			}
			if len(n.pairs) == maxPairs {
				return fmt.Sprintf("more than %d pairs of series may match", maxPairs)
			}
			left, right := j, uint32(i)
			if n.manyLeft {
				left, right = right, left
			}
			n.pairs[uint64(left)<<32|uint64(right)] = o.ordinal
		}
	}
	return ""
}

// joinText formats the operator with its matching clause.
func joinText(e *parser.BinaryExpr) string {
	var sb strings.Builder
	sb.WriteString(e.Op.String())
	if e.ReturnBool {
		sb.WriteString(" bool")
	}
	m := e.VectorMatching
	if m.On {
		fmt.Fprintf(&sb, " on (%s)", strings.Join(m.MatchingLabels, ", "))
	} else if len(m.MatchingLabels) > 0 {
		fmt.Fprintf(&sb, " ignoring (%s)", strings.Join(m.MatchingLabels, ", "))
	}
	switch m.Card {
	case parser.CardManyToOne:
		fmt.Fprintf(&sb, " group_left (%s)", strings.Join(m.Include, ", "))
	case parser.CardOneToMany:
		fmt.Fprintf(&sb, " group_right (%s)", strings.Join(m.Include, ", "))
	}
	return sb.String()
}

func (n *joinNode) feeds(child int) []uint32 {
	if n.pairs != nil || n.merged {
		return nil
	}
	if (child == 0) == n.manyLeft {
		return n.to
	}
	manyKeys, oneKeys := n.lk, n.rk
	if !n.manyLeft {
		manyKeys, oneKeys = n.rk, n.lk
	}
	of := make(map[uint32]uint32, len(n.to))
	for i, k := range manyKeys {
		if k == vector.NoOrdinal {
			continue
		}
		if _, ok := of[k]; ok {
			return nil
		}
		of[k] = n.to[i]
	}
	out := make([]uint32, len(oneKeys))
	for j, k := range oneKeys {
		out[j] = vector.NoOrdinal
		if k != vector.NoOrdinal {
			out[j] = of[k]
		}
	}
	return out
}

func (n *joinNode) sql(b *builder) string {
	l, r := b.rel(n.l), b.rel(n.r)
	sql := fmt.Sprintf("SELECT %s AS i, prom_binary('%s', l.v, r.v) AS v FROM %s AS l JOIN %s AS r ON prom_at(l.i, %s) = prom_at(r.i, %s)",
		n.output(b), n.op, l, r, b.blob(vector.OrdinalArray(n.lk)), b.blob(vector.OrdinalArray(n.rk)))
	if n.merged {
		// At most one of the rows of one output has a value at a step: every aggregate that keeps
		// it returns the same.
		sql = "SELECT i, " + b.counted("prom_max", "v") + " AS v FROM (" + sql + ") GROUP BY i"
	}
	return sql
}

// output returns the SQL expression of the output of a pair.
func (n *joinNode) output(b *builder) string {
	if n.pairs == nil {
		side := "r"
		if n.manyLeft {
			side = "l"
		}
		return fmt.Sprintf("prom_at(%s.i, %s)", side, b.blob(vector.OrdinalArray(n.to)))
	}
	pairs, to := make([]uint64, 0, len(n.pairs)), make([]uint32, 0, len(n.pairs))
	for p, o := range n.pairs { // Map sorts
		pairs, to = append(pairs, p), append(to, o)
	}
	return fmt.Sprintf("prom_pick((l.i::UBIGINT << 32) | r.i::UBIGINT, %s)", b.blob(vector.OrdinalMap(pairs, to)))
}

func (n *joinNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	f, byKey := promsql.OperatorOf(n.op), make(map[uint32][]vector.Row, len(in[1]))
	for _, r := range in[1] {
		if k := n.rk[r.I]; k != vector.NoOrdinal {
			byKey[k] = append(byKey[k], r)
		}
	}
	out := make([]vector.Row, 0, max(len(in[0]), len(in[1])))
	for _, l := range in[0] {
		for _, r := range byKey[n.lk[l.I]] {
			if to, ok := n.outputOf(l.I, r.I); ok {
				out = vector.Join(out, to, f, l.V, r.V, t.Room)
			}
		}
	}
	return vector.Union(out, t.Room), nil
}

// outputOf returns the output of a left and a right series with the same key, false if there is
// none.
func (n *joinNode) outputOf(l, r uint32) (to uint32, ok bool) {
	switch {
	case n.pairs != nil:
		to, ok = n.pairs[uint64(l)<<32|uint64(r)]
		return to, ok
	case n.manyLeft:
		return n.to[l], true
	}
	return n.to[r], true
}
