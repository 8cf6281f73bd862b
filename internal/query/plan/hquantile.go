package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/schema"
	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

// ErrForcedMonotonicity reports that a statement made the buckets of a histogram monotonic.
// Upstream's engine annotates the answer with the buckets and times, so the query must be planned
// again with Options.EngineQuantiles.
var ErrForcedMonotonicity = errors.New("histogram_quantile needs monotonic buckets")

// quantileNode is histogram_quantile over classic buckets.
type quantileNode struct {
	unary
	phi Node
	les []float64 // the distinct upper bounds
	le  []uint32  // le[i] is the index in les of series i
	to  []uint32  // to[i] is the histogram of series i
}

// compileHistogramQuantile compiles histogram_quantile(phi, buckets).
// Source: funcHistogramQuantile and resetHistograms in upstream's promql.
func compileHistogramQuantile(b *building, e *parser.Call, at place) (Node, string) {
	if b.options.EngineQuantiles {
		return nil, "the engine reports which buckets were not monotonic"
	}
	phi, ok := Constant(e.Args[0])
	if !ok {
		return nil, "the parameter of histogram_quantile() is not constant"
	}
	at.unordered = true
	in, reason := b.compile(e.Args[1], at)
	if reason != "" {
		return nil, reason
	}
	n := &quantileNode{unary: unary{shaped: shaped{Shape{Grid: at.grid()}}, in: in}, phi: newConst(phi, at.grid())}
	if reason := n.histograms(in.Shape().Labels, b.options.DelayedNames); reason != "" {
		return nil, reason
	}
	if b.options.DelayedNames {
		n.shape.Drop = dropAll(n.shape.Labels)
	}
	if n.shape.notes, reason = in.Shape().grouped(n.to, len(n.shape.Labels)); reason != "" {
		return nil, reason
	}
	if badQuantile(phi) {
		n.shape.notes = append(n.shape.notes, note{err: annotations.NewInvalidQuantileWarning(phi, e.Args[0].PositionRange()), always: true})
	}
	return n, ""
}

// histograms assigns buckets to histograms. Buckets of one histogram have equal labels, including
// the name and without le. It returns a reason not to push if that fails.
func (n *quantileNode) histograms(in []labels.Labels, delayed bool) string {
	n.to, n.le = make([]uint32, len(in)), make([]uint32, len(in))
	numbers, bounds := numbering{}, map[uint64]uint32{}
	lb := labels.NewBuilder(labels.EmptyLabels())
	var key []byte
	for i, l := range in {
		le, err := strconv.ParseFloat(l.Get(model.BucketLabel), 64)
		switch {
		case err != nil:
			return "a series is no bucket: its label le is not a number"
		case math.IsNaN(le):
			return "a bucket has no upper bound"
		}
		bits := math.Float64bits(le)
		if _, ok := bounds[bits]; !ok {
			bounds[bits] = uint32(len(n.les))
			n.les = append(n.les, le)
		}
		n.le[i] = bounds[bits]
		key = l.BytesWithoutLabels(key, model.BucketLabel)
		var isNew bool
		if n.to[i], isNew = numbers.of(key); isNew {
			lb.Reset(l)
			out := lb.Del(model.BucketLabel).Labels()
			if !delayed {
				out = out.DropReserved(schema.IsMetadataLabel)
			}
			n.shape.Labels = append(n.shape.Labels, out)
		}
	}
	if !distinct(n.shape.Labels) {
		return duplicates
	}
	return ""
}

// String implements Node.
func (n *quantileNode) String() string { return "histogram_quantile " + n.phi.String() }

func (n *quantileNode) feeds(int) []uint32 { return n.to }

func (n *quantileNode) sql(b *builder) string {
	in, phi := b.rel(n.in), b.list(n.phi)
	bounds := make([]string, len(n.les))
	for i, le := range n.les {
		bounds[i] = "'" + formatFloat(le) + "'::DOUBLE"
	}
	buckets := fmt.Sprintf("SELECT prom_at(i, %s) AS i, [%s][prom_at(i, %s) + 1] AS le, v FROM %s",
		b.blob(vector.OrdinalArray(n.to)), strings.Join(bounds, ", "), b.blob(vector.OrdinalArray(n.le)), in)
	return fmt.Sprintf("SELECT i, %s AS v FROM (%s) GROUP BY i", b.counted("prom_histogram_quantile", phi+", le, v"), buckets)
}

func (n *quantileNode) compute(in [][]vector.Row, t *Tools) ([]vector.Row, error) {
	buckets := vector.Histograms{Bounds: n.les, Bound: n.le, To: n.to}
	out, forced, err := buckets.Quantile(n.phi.(*constNode).value, in[0], t.Memory)
	if forced {
		return nil, ErrForcedMonotonicity
	}
	return out, err
}

// skippableQuantile is the reason not to push a node that could make DuckDB skip a
// histogram_quantile below it.
const skippableQuantile = "a histogram_quantile can be left out below it"

// repairs reports whether a histogram_quantile is at or below a node. Upstream adds an annotation
// where it repairs buckets. The budget of the statement then reports it, but only if DuckDB
// evaluates all of the histogram_quantile; a join, or another node with several inputs, may not
// need all rows of an input.
func repairs(n Node) bool {
	if _, ok := n.(*quantileNode); ok {
		return true
	}
	return slices.ContainsFunc(n.Children(), repairs)
}

// skips reports whether a node may not evaluate a histogram_quantile below it, depending on another
// child.
func skips(n Node) bool {
	var in []Node
	for _, c := range n.Children() {
		if _, ok := c.(*constNode); !ok {
			in = append(in, c)
		}
	}
	return len(in) > 1 && slices.ContainsFunc(in, repairs)
}
