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
	// place, if not nil, is the position of each series of the one side among those with its key: of
	// several, at most one has a value at a step. Then to is where the outputs of a series of the many
	// side begin in pairs, which has one for each of these positions.
	place, pairs []uint32
	merged       bool // several pairs have one output
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
		n.place = make([]uint32, len(p.one.keys))
		for _, members := range p.one.members {
			for x, j := range members {
				n.place[j] = uint32(x)
			}
		}
	}
	manyClass, oneClass := classes(p.manyNode), classes(p.oneNode)
	seen := map[uint64]output{}
	n.to = make([]uint32, len(p.many.keys))
	for i, k := range p.many.keys {
		n.to[i] = vector.NoOrdinal
		if !simple && len(p.one.members[k]) > 0 {
			n.to[i] = uint32(len(n.pairs))
		}
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
			n.pairs = append(n.pairs, o.ordinal)
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
	if n.place != nil || n.merged {
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
	many, one := "r", "l"
	if n.manyLeft {
		many, one = one, many
	}
	to := fmt.Sprintf("prom_at(%s.i, %s)", many, b.blob(vector.OrdinalArray(n.to)))
	if n.place == nil {
		return to
	}
	return fmt.Sprintf("prom_at(%s + prom_at(%s.i, %s), %s)", to, one, b.blob(vector.OrdinalArray(n.place)), b.blob(vector.OrdinalArray(n.pairs)))
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
			out = vector.Join(out, n.outputOf(l.I, r.I), f, l.V, r.V, t.Room)
		}
	}
	return vector.Union(out, t.Room), nil
}

// outputOf returns the output of a left and a right series with the same key.
func (n *joinNode) outputOf(l, r uint32) uint32 {
	many, one := r, l
	if n.manyLeft {
		many, one = l, r
	}
	if n.place == nil {
		return n.to[many]
	}
	return n.pairs[n.to[many]+n.place[one]]
}
