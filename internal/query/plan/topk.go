package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// maxK is the least parameter of topk that upstream rejects.
const maxK = float64(1<<63 - 1024)

// topNode selects k series of each group at each step.
type topNode struct {
	unary
	op string // topk, bottomk or limitk: the C aggregate is prom_<op>
	by string // for String
	k  int64
	to []uint32 // the group of each series
}

// compileTopK compiles the aggregations that select series of each group.
func compileTopK(b *building, e *parser.AggregateExpr, at place) (Node, string) {
	op := e.Op.String()
	k, ok := Constant(e.Param)
	switch {
	case !ok:
		return nil, "the parameter of " + op + " is not constant"
	case b.options.Step <= 0 && !at.unordered:
		return nil, "the engine sorts the results of " + op
	}
	at.unordered = true
	in, reason := b.compile(e.Expr, at)
	if reason != "" {
		return nil, reason
	}
	if e.Op == parser.LIMIT_RATIO {
		// The labels of a series decide whether it is selected.
		if k == 0 || math.IsNaN(k) {
			return nil, "limit_ratio of " + formatFloat(k) + " is evaluated by the engine"
		}
		from := in.Shape()
		if repairs(in) {
			return nil, skippableQuantile
		}
		notes, reason := from.independentNotes()
		if reason != "" {
			return nil, reason
		}
		bounded := min(max(k, -1), 1)
		if bounded != k {
			warning := note{err: annotations.NewInvalidRatioWarning(k, bounded, e.Param.PositionRange()), always: true}
			notes = append(slices.Clip(notes), warning)
		}
		n := &pickNode{unary: unary{in: in}, titled: titled{"limit_ratio " + formatFloat(k)}, to: none(len(from.Labels))}
		n.shape = Shape{Grid: at.grid(), notes: notes}
		sampler := promql.NewHashRatioSampler()
		for i, l := range from.Labels {
			if !sampler.AddRatioSample(bounded, &promql.Sample{Metric: l}) {
				continue
			}
			n.to[i] = uint32(len(n.shape.Labels))
			n.shape.Labels = append(n.shape.Labels, l)
			if from.Drop != nil {
				n.shape.Drop = append(n.shape.Drop, from.Drop[i])
			}
		}
		return n, ""
	}
	if !(k >= 1 && k < maxK) {
		return nil, op + " of " + formatFloat(k) + " is evaluated by the engine"
	}
	from := in.Shape()
	n := &topNode{unary: unary{in: in}, op: op, by: grouping(e), k: int64(k), to: groups(from.Labels, e.Grouping, e.Without).to}
	n.shape = Shape{Grid: at.grid(), Labels: from.Labels, Drop: from.Drop}
	n.shape.notes, reason = from.independentNotes()
	return n, reason
}

// String implements Node.
func (n *topNode) String() string { return n.op + " " + strconv.FormatInt(n.k, 10) + n.by }

func (n *topNode) sql(b *builder) string {
	spec := b.spec(fmt.Sprintf("k=%d n=%d", min(n.k, int64(max(len(n.to), 1))), n.shape.Grid.N))
	chosen := fmt.Sprintf("SELECT unnest(prom_%s(i, v, %s)) AS s FROM %s", n.op, spec, b.rel(n.in))
	if slices.ContainsFunc(n.to, func(group uint32) bool { return group != 0 }) {
		chosen += fmt.Sprintf(" GROUP BY prom_at(i, %s)", b.blob(vector.OrdinalArray(n.to)))
	}
	return "SELECT s.i AS i, s.v AS v FROM (" + chosen + ")"
}

func (n *topNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	return vector.Top(n.op, n.k, in[0], n.to, t.Memory)
}

// pickNode selects series statically and keeps their values.
type pickNode struct {
	unary
	titled
	to []uint32 // the output of each series
}

// none returns n times vector.NoOrdinal.
func none(n int) []uint32 { return slices.Repeat([]uint32{vector.NoOrdinal}, n) }

func (n *pickNode) feeds(int) []uint32 { return n.to }

func (n *pickNode) sql(b *builder) string {
	return fmt.Sprintf("SELECT i, v FROM (SELECT prom_at(i, %s) AS i, v FROM %s) WHERE i IS NOT NULL", b.blob(vector.OrdinalArray(n.to)), b.rel(n.in))
}

func (n *pickNode) compute(in [][]vector.Row, _ *Tools) ([]vector.Row, error) {
	return vector.Renumber(in[0], n.to), nil
}
