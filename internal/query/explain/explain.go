// Package explain describes how a query is answered, translates it, and runs its statements for
// their profile.
package explain

import (
	"context"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"

	"github.com/promlake/promlake/internal/query/engine"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
)

// explanationVersion is that of Explanation's JSON.
const explanationVersion = 3

// Explanation is how a query is answered.
type Explanation struct {
	Version int    `json:"version"`
	Query   string `json:"query"`
	// EquivalentSQL returns the rows of the query, and runs wherever SQL does: see package
	// translate. "": statements were not asked for.
	EquivalentSQL string      `json:"equivalent_sql,omitempty"`
	Engine        string      `json:"engine"` // what the engine evaluates, with a selector for each pushed subtree
	Pushed        []Subtree   `json:"pushed"`
	Kept          []string    `json:"kept"` // why parts of the query are the engine's
	Selectors     []Selector  `json:"selectors"`
	Cost          source.Cost `json:"cost"` // of the whole query, as things are cached now
	// Division is how the query is divided over workers, or why it is not. "": the process has none.
	Division string `json:"division,omitempty"`
	// KeptAnswers is how many slices of the query have answers that are kept. "": none may be.
	KeptAnswers string `json:"kept_answers,omitempty"`
	// Estimate is what /api/v1/query_cost returns.
	Estimate request.Estimate `json:"estimate"`
}

// Subtree is a part of the query that DuckDB evaluates.
type Subtree struct {
	Name       string      `json:"name"`
	Expr       string      `json:"expr"`
	Tree       Node        `json:"tree"`
	Statements []Statement `json:"statements"` // more than one if its samples do not fit into the memory of a query; none without
}

// Node is an operation of a subtree.
type Node struct {
	Op       string `json:"op"`
	Series   int    `json:"series"`            // of its result
	Samples  int64  `json:"samples,omitempty"` // that it reads, about
	Folded   bool   `json:"folded,omitempty"`  // its input is added up series by series as it is read, before any statement
	Children []Node `json:"children,omitempty"`
}

// Statement is how a subtree is evaluated, and what its leaves read.
type Statement struct {
	Driver plan.Driver `json:"driver"`
	// SQL runs over the values of the leaves at the steps: prom_rows(k) stands for those of leaf k,
	// or of its fold, from 0. "": none runs, as the driver is direct: the subtree is a leaf alone, or
	// its values are few.
	SQL      string      `json:"sql,omitempty"`
	Files    []File      `json:"files"` // that the query reads
	Cost     source.Cost `json:"cost"`
	Analysis *Analysis   `json:"analysis,omitempty"`
}

// File is an object that is read, in part.
type File struct {
	Key       string        `json:"key"`
	RowGroups request.Share `json:"rowGroups"` // none of segments
	Bytes     request.Share `json:"bytes"`
}

// Selector is a selector with its resolved series.
type Selector struct {
	Selector string `json:"selector"`
	Series   int    `json:"series"`
	Replicas int    `json:"replicas,omitempty"` // series as stored, if replicas are shown as one
	Samples  int64  `json:"samples"`            // about
	Segments int    `json:"segments"`
	Blocks   int    `json:"blocks"`
	Refused  string `json:"refused,omitempty"` // why none of it can be pushed
}

// QuestionError reports a text that is not PromQL, or a query that has no steps.
type QuestionError struct{ Err error }

// BadQuery marks this as the client's error, which the HTTP API answers with 400.
func (*QuestionError) BadQuery() bool { return true }

// Error implements error.
func (e *QuestionError) Error() string { return e.Err.Error() }

// Unwrap returns the parser's error.
func (e *QuestionError) Unwrap() error { return e.Err }

// Explain plans a query of e on a queryable that has an executor, and describes the plan. It reads
// no samples unless the statements are run. The tenant is that of the context. The limits are those
// of the query itself.
func Explain(asked context.Context, e *engine.Engine, q storage.Queryable, ask request.Question) (out *Explanation, err error) {
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
	query := up.(*engine.Query)
	defer query.Close()
	err = query.Run(asked, func(ctx context.Context) error {
		_, err := query.Attempt(ctx, func(p *exec.Attempt) error {
			planned := plan.New(query.Statement().(*parser.EvalStmt).Expr, query.Options(ctx))
			pl, err := p.Plan(ctx, planned)
			if err != nil {
				return err
			}
			out = &Explanation{Version: explanationVersion, Query: ask.Text, Engine: pl.Expr.String(), Pushed: []Subtree{}, Kept: append([]string{}, pl.Kept...), Selectors: []Selector{}}
			if out.Cost, out.Estimate, err = p.Price(ctx, pl, planned); err != nil {
				return err
			}
			x := &explainer{p, ask}
			for _, s := range pl.Pushed {
				sub, err := x.subtree(ctx, s)
				if err != nil {
					return err
				}
				out.Pushed = append(out.Pushed, sub)
			}
			for _, sel := range planned.Selectors() {
				out.Selectors = append(out.Selectors, x.selector(sel))
			}
			out.KeptAnswers = query.Kept(ctx, p)
			out.Division = query.Division(ctx, p, planned, out.Estimate)
			return nil
		})
		return engine.StorageError(err)
	})
	if err != nil || ask.WithoutStatements {
		return out, err
	}
	ask.Lookback = query.Statement().(*parser.EvalStmt).LookbackDelta
	sql, err := Translate(ask)
	if err != nil {
		return nil, err
	}
	out.EquivalentSQL = sql.SQL
	return out, nil
}

// explainer describes the parts of a plan.
type explainer struct {
	*exec.Attempt
	ask request.Question
}

func (e *explainer) selector(sel plan.Selector) Selector {
	r := e.Resolution(sel.Expr)
	out := Selector{Selector: sel.Expr.String(), Series: len(r.Series), Samples: r.Samples, Refused: exec.Refused(r)}
	for i := range r.Replicas {
		out.Replicas += len(r.Replicas[i])
	}
	for i := range r.Objects {
		if r.Objects[i].IsBlock() {
			out.Blocks++
		} else {
			out.Segments++
		}
	}
	return out
}

func (e *explainer) subtree(ctx context.Context, s *plan.Pushed) (Subtree, error) {
	out := Subtree{Name: s.Name, Expr: e.ask.Text[s.Pos.Start:s.Pos.End], Tree: explainedNode(s, s.Root), Statements: []Statement{}}
	if e.ask.WithoutStatements {
		return out, nil
	}
	parts, _, ok := s.Partition(e.MaxRows(s, 1))
	if !ok {
		parts = []*plan.Pushed{s}
	}
	for _, part := range parts {
		st, err := e.statement(ctx, part)
		if err == nil && e.ask.Analyze {
			st.Analysis, err = e.analysis(ctx, part)
		}
		if err != nil {
			return out, err
		}
		out.Statements = append(out.Statements, st)
	}
	return out, nil
}

func explainedNode(s *plan.Pushed, n plan.Node) Node {
	out := Node{Op: n.String(), Series: len(n.Shape().Labels), Folded: s.Folds(n)}
	if l, ok := n.(*plan.Leaf); ok {
		out.Samples = l.Resolution.Rows
	}
	for _, c := range n.Children() {
		out.Children = append(out.Children, explainedNode(s, c))
	}
	return out
}

// statement renders a statement as it runs.
func (e *explainer) statement(ctx context.Context, s *plan.Pushed) (out Statement, err error) {
	values, all := make([]plan.Scan, len(s.Leaves)), &source.Usage{}
	for i, l := range s.Leaves {
		read, err := e.Take(ctx, l, all)
		if err != nil {
			return out, err
		}
		out.Files, values[i] = append(out.Files, filesOf(read)...), exec.ScanOf(int64(i))
	}
	out.Cost.Add(all.Cost())
	if out.Driver = s.Driver(); out.Driver == plan.DuckDBDriver {
		out.SQL = s.Statement(values, "").Text()
	}
	return out, nil
}
