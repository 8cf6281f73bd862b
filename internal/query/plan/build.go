package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/parser/posrange"
)

// PushedLabel is the name of the only matcher of a selector that stands for a pushed subtree in a
// plan's expression. The matcher's value is the subtree's name.
const PushedLabel = "__promlake_pushed__"

// Plan is a query divided into pushed subtrees and an expression for the engine.
type Plan struct {
	// Expr is the expression that the engine evaluates. Clone returns it as a parser does: the
	// engine preprocesses it. It shares parts with the planned query, so nobody changes it. A
	// selector stands for each pushed subtree. Its series have a sample at each time of the
	// subtree's grid: the value, or a stale marker if there is none.
	Expr parser.Expr
	// Pushed are the subtrees that statements evaluate, in the order of the query's text.
	Pushed []*Pushed
	// Kept lists why parts of the query were not pushed.
	Kept []string
}

// Pushed is a subtree that one statement evaluates.
type Pushed struct {
	// Name is the value of the matcher PushedLabel.
	Name string
	Root Node
	// Leaves are the leaves of Root, in the order of the query's text.
	Leaves []*Leaf
	// Grid is the times of the values.
	Grid Grid
	// Labels are the labels that the engine sees, by ordinal.
	Labels []labels.Labels
	// Pos is the position of the subtree in the query.
	Pos posrange.PositionRange

	origin origin
	direct bool
	folds  map[*Leaf]*groupNode
}

// origin is what a subtree was compiled from; Partition compiles parts of it.
type origin struct {
	expr    parser.Expr
	at      place
	options *Options
}

// Build plans the query over the series of its selectors. A selector that resolved does not hold is
// left to the engine. Build may be called once.
func (q *Query) Build(resolved map[*parser.VectorSelector]*Resolution) *Plan {
	r := &rewriter{
		b:    newBuilding(q.options, resolved),
		plan: &Plan{},
	}
	at := q.options.top()
	if at.empty() {
		r.plan.Expr = q.expr
		return r.plan
	}
	r.plan.Expr = r.rewrite(q.expr, at, true)
	return r.plan
}

// rewriter replaces the largest subtrees of an expression that can be pushed.
type rewriter struct {
	b    *building
	plan *Plan
	// invariant: the engine evaluates the expression that is being rewritten at the first step
	// only.
	invariant bool
	// few: an expression that has the one that is being rewritten has too few samples.
	few bool
}

// rewrite returns the expression that the engine evaluates in place of expr. whole: the values of
// expr are those of the query.
func (r *rewriter) rewrite(expr parser.Expr, at place, whole bool) parser.Expr {
	if inv, ok := expr.(*parser.StepInvariantExpr); ok {
		defer func(was bool) { r.invariant = was }(r.invariant)
		r.invariant = true
		return r.rewrite(inv.Expr, at.once(), whole)
	}
	if t := expr.Type(); at.empty() || t != parser.ValueTypeVector && t != parser.ValueTypeScalar {
		return r.descend(expr, at, whole)
	}
	node, reason := r.b.compile(expr, at)
	if reason == "" {
		nodes := nodesOf(node)
		leaves := leavesAmong(nodes)
		rows, least := rowsOf(leaves), r.b.options.MinRows
		folds := foldsOf(nodes, &r.b.options)
		direct := r.direct(nodes, folds, whole)
		l, leaf := node.(*Leaf)
		kernel := leaf && !bare(node) // it needs no statement
		switch {
		case len(leaves) == 0:
			return expr
		case rows < least && !direct && !(r.b.options.Kernels && kernel):
			if !r.few { // else the reason was recorded at an expression that has this one
				r.keep(expr, fmt.Sprintf("its selectors have about %d samples, fewer than %d", rows, least))
			}
			defer func(was bool) { r.few = was }(r.few)
			r.few = true // every subtree of it has fewer still
			return r.descend(expr, at, whole)
		case least > 0 && !direct && bare(node) && int64(len(l.shape.Labels))*int64(l.Spec.Grid.N) > rows:
			// It is less work to pass the samples to the engine.
			r.keep(expr, "there are more steps than samples")
			return expr
		}
		var p *Pushed
		if p, reason = r.pushed(expr, at, node, leaves, whole); reason == "" {
			p.direct = direct
			if p.folds = folds; p.Root != node {
				p.folds = foldsOf(nodesOf(p.Root), &r.b.options)
			}
			r.plan.Pushed = append(r.plan.Pushed, p)
			sel := &parser.VectorSelector{LabelMatchers: []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, PushedLabel, p.Name)}, PosRange: p.Pos}
			if r.invariant {
				// With @ the engine knows that the value at the first step holds at all steps, as
				// it did for the replaced expression.
				start := at.start
				sel.Timestamp = &start
			}
			if p.Root.Shape().Scalar {
				return &parser.Call{Func: parser.Functions["scalar"], Args: parser.Expressions{sel}, PosRange: p.Pos}
			}
			return sel
		}
	}
	r.keep(expr, reason)
	return r.descend(expr, at, whole)
}

// direct reports whether the first of nodes, which has the others below it, is evaluated without a
// statement. A bare selector is if its values are the result: the engine takes samples as well as
// values.
func (r *rewriter) direct(nodes []Node, folds map[*Leaf]*groupNode, whole bool) bool {
	o, n := &r.b.options, nodes[0]
	if o.MinRows == 0 || !o.Kernels || bare(n) && !whole {
		return false
	}
	leaves, all := valuesOf(nodes, folds)
	most := maxDirect
	if slices.ContainsFunc(nodes, func(n Node) bool { _, keeps := n.(*topNode); return keeps }) {
		most = maxKept
	}
	return leaves <= most && all <= directNodes*most
}

// valuesOf returns how many values the leaves among all nodes of a subtree, or their folds, have at
// most, and all of the nodes. What is below a fold is not held.
func valuesOf(nodes []Node, folds map[*Leaf]*groupNode) (leaves, all int) {
	for _, n := range nodes {
		if l, ok := n.(*Leaf); ok && folds[l] != nil {
			continue
		}
		values, folded := len(n.Shape().Labels)*n.Shape().Grid.N, isFold(folds, n)
		if all += values; !folded {
			all += spreadOf(n)
		}
		if folded || len(n.Children()) == 0 {
			leaves += values
		}
	}
	return leaves, all
}

// spreadOf is the number of values that compute makes of the children of a node that have one value
// for all steps: at each step of a subquery, for example.
func spreadOf(n Node) (values int) {
	for _, c := range n.Children() {
		if steps := readBy(n).N; c.Shape().Grid.N == 1 && steps > 1 {
			values += len(c.Shape().Labels) * steps
		}
	}
	return values
}

const (
	// maxDirect is the largest number of values of leaves that are evaluated without a statement.
	// They are summed in the order of the series, as those of a statement up to this number.
	maxDirect = maxOrdered
	// maxKept is that of a subtree with topk, bottomk or limitk. A statement would copy all values
	// that it chooses from.
	maxKept = 8 * maxDirect
	// directNodes times as many values may all operations have, which are held at once.
	directNodes = 4
)

// bare reports whether a node is a selector of values.
func bare(n Node) bool {
	l, ok := n.(*Leaf)
	return ok && l.Func == "prom_instant"
}

// rowsOf returns the approximate number of samples that leaves read.
func rowsOf(leaves []*Leaf) (rows int64) {
	for _, l := range leaves {
		rows += l.Resolution.Rows
	}
	return rows
}

// keep records why an expression is not pushed. A reason that comes from a child was recorded at
// the child.
func (r *rewriter) keep(expr parser.Expr, reason string) {
	for c := range parser.ChildrenIter(expr) {
		e, ok := c.(parser.Expr)
		if !ok {
			continue
		}
		if done, ok := r.b.done[Unwrap(e)]; ok && done.reason == reason {
			return
		}
	}
	if text := expr.String() + ": " + reason; !slices.Contains(r.plan.Kept, text) {
		r.plan.Kept = append(r.plan.Kept, text)
	}
}

// pushed returns a node, which reads some leaves, as a subtree of the plan, or the reason not to
// push it.
func (r *rewriter) pushed(expr parser.Expr, at place, n Node, leaves []*Leaf, whole bool) (*Pushed, string) {
	if !n.Shape().reads(leaves) {
		return nil, hiddenAnnotations
	}
	if pruned := r.b.prune(expr, at, n); pruned != n {
		n, leaves = pruned, leavesAmong(nodesOf(pruned))
	}
	ls, reason := handOver(n.Shape(), whole)
	if reason != "" {
		return nil, reason
	}
	p := &Pushed{
		Name: strconv.Itoa(len(r.plan.Pushed)), Root: n, Leaves: leaves, Grid: at.grid(), Labels: ls, Pos: expr.PositionRange(),
		origin: origin{expr: expr, at: at, options: &r.b.options},
	}
	if most := r.b.options.MaxRows; !p.fits(most) {
		return nil, fmt.Sprintf("it needs about %d samples at once, more than %d", rowsOf(p.Leaves), most)
	}
	return p, ""
}
