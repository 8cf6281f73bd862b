package rulefn

import (
	"math"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/ruleeval"
)

// maxResultBytes is the memory of results from which on a run evaluates no more.
const maxResultBytes = 128 << 20

// results are what the rules of a run have written. Rules that follow see them, before they are in
// the store.
type results struct {
	reading    storage.Queryable
	parser     parser.Parser
	memory     *ruleeval.Memory
	txs        []*appender.Transaction
	appendable storage.Appendable
	selectors  map[string][][]*labels.Matcher // by expression
}

func newResults(reading storage.Queryable, p parser.Parser) *results {
	r := &results{reading: reading, parser: p, selectors: map[string][][]*labels.Matcher{}}
	r.restart()
	return r
}

// restart empties what is seen and what was appended.
func (r *results) restart() {
	r.memory = ruleeval.NewMemory(math.MaxInt64, "")
	r.appendable = appender.V1{Appendable: appender.New(func(tx *appender.Transaction) error {
		r.txs = append(r.txs, tx)
		return r.memory.Add(tx)
	})}
}

// undo forgets all transactions but the first n: an evaluation that does not count has no results.
func (r *results) undo(n int) error {
	if len(r.txs) == n {
		return nil
	}
	r.txs = r.txs[:n]
	r.restart()
	for _, tx := range r.txs {
		if err := r.memory.Add(tx); err != nil {
			return err
		}
	}
	return nil
}

// data returns what an expression reads: the store alone if none of the results can match, because
// reads of several storages cannot be pushed down.
func (r *results) data(expr string) storage.Queryable {
	selectors, known := r.selectors[expr]
	if !known {
		if e, err := r.parser.ParseExpr(expr); err == nil {
			var reads [][]*labels.Matcher
			parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
				switch x := n.(type) {
				case *parser.VectorSelector:
					reads = append(reads, x.LabelMatchers)
				case *parser.Call:
					if x.Func.Name == "info" { // it finds metrics by itself
						reads = append(reads, nil)
					}
				}
				return nil
			})
			selectors = reads
		}
		r.selectors[expr] = selectors
	}
	for _, ms := range selectors {
		if r.memory.MayHave(ms) {
			return ruleeval.Layers{r.reading, r.memory}
		}
	}
	return r.reading
}
