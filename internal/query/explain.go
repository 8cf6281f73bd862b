package query

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
)

// explanationVersion is that of Explanation's JSON.
const explanationVersion = 1

// Question is a query that is to be explained. Step 0 makes it an instant query, at End.
type Question struct {
	Text       string
	Start, End time.Time
	Step       time.Duration
	Lookback   time.Duration // 0 = the stage's
	Analyze    bool          // run the statements, and tell how that went
}

// Explanation is how a query is answered.
type Explanation struct {
	Version   int                 `json:"version"`
	Query     string              `json:"query"`
	Engine    string              `json:"engine"` // what the engine evaluates, with a selector for each pushed subtree
	Pushed    []ExplainedSubtree  `json:"pushed"`
	Kept      []string            `json:"kept"` // why parts of the query are the engine's
	Selectors []ExplainedSelector `json:"selectors"`
	Cost      Cost                `json:"cost"` // of the whole query, as things are cached now
}

// ExplainedSubtree is a part of the query that DuckDB evaluates.
type ExplainedSubtree struct {
	Name       string               `json:"name"`
	Expr       string               `json:"expr"`
	Tree       ExplainedNode        `json:"tree"`
	Statements []ExplainedStatement `json:"statements"` // more than one if its samples do not fit into the memory of a query
}

// ExplainedNode is an operation of a subtree.
type ExplainedNode struct {
	Op       string          `json:"op"`
	Series   int             `json:"series"`            // of its result
	Samples  int64           `json:"samples,omitempty"` // that it reads, about
	Children []ExplainedNode `json:"children,omitempty"`
}

// ExplainedStatement is one SQL statement.
type ExplainedStatement struct {
	SQL      string          `json:"sql"` // runs wherever the functions are, see promlake sql
	Files    []ExplainedFile `json:"files"`
	Cost     Cost            `json:"cost"`
	Analysis *Analysis       `json:"analysis,omitempty"`
}

// ExplainedFile is an object that is read, in part.
type ExplainedFile struct {
	Key       string        `json:"key"`
	RowGroups request.Share `json:"rowGroups"` // none of segments
	Bytes     request.Share `json:"bytes"`
}

// ExplainedSelector is a selector whose series were looked up.
type ExplainedSelector struct {
	Selector string `json:"selector"`
	Series   int    `json:"series"`
	Samples  int64  `json:"samples"` // about
	Segments int    `json:"segments"`
	Blocks   int    `json:"blocks"`
	Refused  string `json:"refused,omitempty"` // why none of it can be pushed
}

// QuestionError reports a question that is none: its text is not PromQL, or no query that has steps.
type QuestionError struct{ Err error }

// BadQuery tells the HTTP API that this is the asker's mistake (400).
func (*QuestionError) BadQuery() bool { return true }

// Error implements error.
func (e *QuestionError) Error() string { return e.Err.Error() }

// Unwrap returns the parser's error.
func (e *QuestionError) Unwrap() error { return e.Err }

// explain plans a query of e on a queryable that has an executor, and describes the plan. It reads no
// samples unless the statements are run. The tenant is that of the context. The limits are those of
// the query itself.
func explain(asked context.Context, e *engine, q storage.Queryable, ask Question) (out *Explanation, err error) {
	opts := promql.NewPrometheusQueryOpts(false, ask.Lookback)
	var up promql.Query
	if ask.Step > 0 {
		up, err = e.NewRangeQuery(asked, q, opts, ask.Text, ask.Start, ask.End, ask.Step)
	} else {
		up, err = e.NewInstantQuery(asked, q, opts, ask.Text, ask.End)
	}
	if err != nil {
		return nil, &QuestionError{err}
	}
	query := up.(*pushedQuery)
	defer query.Close()
	err = query.run(asked, func(ctx context.Context) error {
		expr, err := query.parse()
		if err != nil {
			return storageError(err)
		}
		_, err = query.attempt(ctx, func(p *pushing) error {
			planned, err := plan.Prepare(expr, query.options(ctx))
			if err != nil {
				return err
			}
			pl, err := p.plan(ctx, planned)
			if err != nil {
				return err
			}
			out = &Explanation{Version: explanationVersion, Query: query.String(), Engine: pl.Expr.String(), Pushed: []ExplainedSubtree{}, Kept: append([]string{}, pl.Kept...), Selectors: []ExplainedSelector{}}
			return (&explainer{pushing: p, out: out, analyze: ask.Analyze}).fill(ctx, pl, planned)
		})
		return storageError(err)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// explainer fills in an explanation.
type explainer struct {
	*pushing
	out     *Explanation
	analyze bool
}

func (e *explainer) fill(ctx context.Context, pl *plan.Plan, planned *plan.Query) error {
	if !e.files.Local() {
		e.out.Cost.add(Cost{Lists: 1, Gets: 1}) // the segments, and the manifest
	}
	for _, s := range pl.Pushed {
		sub, err := e.subtree(ctx, s)
		if err != nil {
			return err
		}
		e.out.Pushed = append(e.out.Pushed, sub)
	}
	for _, sel := range planned.Selectors() {
		e.out.Selectors = append(e.out.Selectors, e.selector(sel))
	}
	all := newTaking()
	for _, s := range pl.Pushed {
		for _, l := range s.Leaves {
			if _, err := e.take(ctx, l, all); err != nil {
				return err
			}
		}
	}
	for _, sel := range kept(pl, planned) {
		all.add(e.rawReadOf(ctx, sel))
	}
	e.out.Cost.add(all.cost())
	return nil
}

func (e *explainer) selector(sel plan.Selector) ExplainedSelector {
	r := e.resolved[sel.Expr]
	out := ExplainedSelector{Selector: sel.Expr.String(), Series: len(r.Series), Samples: r.Samples, Refused: refused(r)}
	for i := range r.Objects {
		if r.Objects[i].IsBlock() {
			out.Blocks++
		} else {
			out.Segments++
		}
	}
	return out
}

func (e *explainer) subtree(ctx context.Context, s *plan.Pushed) (ExplainedSubtree, error) {
	out := ExplainedSubtree{Name: s.Name, Expr: e.out.Query[s.Pos.Start:s.Pos.End], Tree: explainedNode(s.Root)}
	parts, _, ok := s.Partition((&runner{pushing: e.pushing}).maxRows(s))
	if !ok {
		parts = []*plan.Pushed{s}
	}
	for _, part := range parts {
		st, err := e.statement(ctx, part)
		if err == nil && e.analyze {
			st.Analysis, err = e.analysis(ctx, part)
		}
		if err != nil {
			return out, err
		}
		out.Statements = append(out.Statements, st)
	}
	return out, nil
}

func explainedNode(n plan.Node) ExplainedNode {
	out := ExplainedNode{Op: n.String(), Series: len(n.Shape().Labels)}
	if l, ok := n.(*plan.Leaf); ok {
		out.Samples = l.Resolution.Rows
	}
	for _, c := range n.Children() {
		out.Children = append(out.Children, explainedNode(c))
	}
	return out
}

// statement renders a statement as it would read the objects where they are.
func (e *explainer) statement(ctx context.Context, s *plan.Pushed) (ExplainedStatement, error) {
	var out ExplainedStatement
	scans := make([]plan.Scan, len(s.Leaves))
	all := newTaking()
	for i, l := range s.Leaves {
		scan, err := e.scanOf(l)
		var taken *sampleRead
		if err == nil {
			taken, err = e.take(ctx, l, all)
		}
		if err != nil {
			return out, err
		}
		out.Files = append(out.Files, taken.explained(scan.explained())...)
		scans[i] = scan.scan(e.files.Path)
	}
	out.Cost.add(all.cost())
	out.SQL = s.Statement(scans, "").Text()
	return out, nil
}

// scanOf plans the read of a leaf in SQL.
func (e *explainer) scanOf(l *plan.Leaf) (*leafScan, error) {
	res, wanted, err := e.wanted(l)
	if err != nil {
		return nil, err
	}
	mint, maxt := e.span.Clip(l.Range())
	return newLeafScan(res, wanted, mint, maxt), nil
}
