package engine

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/prom/expression"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/usage"
)

// remembering is a parser that remembers the expressions that it parsed last: rules and panels ask
// the same again and again, and upstream's engine changes the one that it gets. It is safe for
// concurrent use.
type remembering struct {
	parser.Parser
	withoutStarts bool // start_timestamp() has no result

	mu   sync.Mutex
	last *memory.LRU[string, *known] // by text
}

// known is an expression of a text, with what each query of it needs to know. It is shared: nobody
// may change it but for large.
type known struct {
	parser.Expr
	growth request.Growth // of the results' labels
	asks   *usage.Wants
	own    bool         // it mentions the label of the engine's own selectors, which only those may have
	large  *atomic.Bool // a query of it read so much that slices of its answer are kept
}

// The memory (bytes) of all expressions that are remembered, and of one besides the parsed text,
// about.
const (
	rememberedBytes = 64 << 20
	expressionBytes = 512
)

func newRemembering(o parser.Options, withoutStarts bool) *remembering {
	return &remembering{Parser: parser.NewParser(o), withoutStarts: withoutStarts, last: memory.NewLRU[string, *known](rememberedBytes)}
}

// ParseExpr implements parser.Parser. The expression is the caller's.
func (p *remembering) ParseExpr(text string) (parser.Expr, error) {
	expr, err := p.parsed(text)
	if err != nil {
		return nil, err
	}
	return plan.Clone(expr.Expr), nil
}

// parsed returns the expression of a text.
func (p *remembering) parsed(text string) (*known, error) {
	if k := p.known(text); k != nil {
		return k, nil
	}
	expr, err := p.Parser.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	if p.withoutStarts {
		// start_timestamp() of a selector becomes that of an expression, which has no result.
		// Prometheus without use-start-timestamps has none of a selector either. Upstream's engine
		// has that feature here in any case, since rates of points need it.
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if c, ok := n.(*parser.Call); ok && c.Func.Name == "start_timestamp" {
				c.Args[0] = &parser.UnaryExpr{Op: parser.ADD, Expr: c.Args[0], StartPos: c.Args[0].PositionRange().Start}
			}
			return nil
		})
	}
	found := false
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			for _, m := range s.LabelMatchers {
				found = found || m.Name == plan.PushedLabel
			}
		}
		return nil
	})
	k := &known{Expr: expr, growth: growthOf(expr), asks: usage.Wanted(expr), own: found, large: &atomic.Bool{}}
	if cost := expressionBytes + expression.ParsedBytes(text); cost <= rememberedBytes/8 {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.last.Get(text) == nil {
			p.last.Add(text, k, cost)
			p.last.Evict(0)
		}
	}
	return k, nil
}

func (p *remembering) known(text string) *known {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.last.Get(text); e != nil {
		return e.Value
	}
	return nil
}
