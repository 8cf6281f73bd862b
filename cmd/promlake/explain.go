package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/base/ask"
	"github.com/promlake/promlake/internal/query/explain"
	"github.com/promlake/promlake/internal/query/request"
)

// explain requests an explanation of the query from the server at base, and prints it: as text, or
// as the JSON value of the response's "data".
func (q question) explain(ctx context.Context, client *http.Client, base string, analyze bool, w io.Writer, format string) error {
	_, form := q.request()
	if analyze {
		form.Set("analyze", "true")
	}
	var a struct {
		Data json.RawMessage `json:"data"`
	}
	if err := ask.PostJSON(ctx, client, base+"/api/v1/explain", form, math.MaxInt64, &a); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	if format == "json" {
		_, err := fmt.Fprintf(w, "%s\n", a.Data)
		return err
	}
	var e explain.Explanation
	if err := json.Unmarshal(a.Data, &e); err != nil {
		return fmt.Errorf("read explanation: %w", err)
	}
	_, err := io.WriteString(w, explained(&e))
	return err
}

// explained renders an explanation as text.
func explained(e *explain.Explanation) string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine: %s\n", e.Engine)
	for _, k := range e.Kept {
		fmt.Fprintf(&b, "kept: %s\n", k)
	}
	if e.Division != "" {
		fmt.Fprintf(&b, "division: %s\n", e.Division)
	}
	for _, s := range e.Selectors {
		replicas := ""
		if s.Replicas > 0 {
			replicas = fmt.Sprintf(" of %d replicas", s.Replicas)
		}
		fmt.Fprintf(&b, "selector %s: %d series%s, %d samples in %d segments and %d blocks\n", s.Selector, s.Series, replicas, s.Samples, s.Segments, s.Blocks)
	}
	for _, p := range e.Pushed {
		fmt.Fprintf(&b, "\npushed %s: %s\n", p.Name, p.Expr)
		writeNode(&b, &p.Tree, 1)
		for _, s := range p.Statements {
			for _, f := range s.Files {
				groups := ""
				if f.RowGroups.Considered > 0 { // segments and rollups have none
					groups = fmt.Sprintf("%d of %d row groups, ", f.RowGroups.Read, f.RowGroups.Considered)
				}
				fmt.Fprintf(&b, "  file %s: %s%s of %s\n", f.Key, groups, human.Bytes(f.Bytes.Read), human.Bytes(f.Bytes.Considered))
			}
			fmt.Fprintf(&b, "  driver: %s\n", s.Driver)
			if s.SQL != "" {
				fmt.Fprintf(&b, "  runs: %s;\n", s.SQL)
			}
			if a := s.Analysis; a != nil {
				fmt.Fprintf(&b, "  took %.1f ms, %d rows, aggregates held %s\n", a.Seconds*1000, a.Rows, human.Bytes(a.PeakBytes))
				for _, l := range a.Leaves {
					fmt.Fprintf(&b, "    %s: %.1f ms, %d samples, %d rows\n", l.Op, l.Seconds*1000, l.Samples, l.Rows)
				}
				if a.Operator != nil {
					writeOperator(&b, a.Operator, 2)
				}
			}
		}
	}
	fmt.Fprintf(&b, "\nequivalent SQL:\n%s;\n", e.EquivalentSQL)
	c := e.Cost
	fmt.Fprintf(&b, "\nstore: %d LIST, %d GET, $%.7f; samples of %s are read\n", c.Lists, c.Gets, c.Dollars, human.Bytes(c.Bytes))
	return b.String()
}

func writeNode(b *strings.Builder, n *explain.Node, depth int) {
	fmt.Fprintf(b, "%s%s: %d series", strings.Repeat("  ", depth), n.Op, n.Series)
	if n.Samples > 0 {
		fmt.Fprintf(b, ", %d samples", n.Samples)
	}
	if n.Folded {
		b.WriteString(", folded")
	}
	b.WriteByte('\n')
	for i := range n.Children {
		writeNode(b, &n.Children[i], depth+1)
	}
}

func writeOperator(b *strings.Builder, o *explain.Operator, depth int) {
	fmt.Fprintf(b, "%s%s: %.1f ms, %d rows", strings.Repeat("  ", depth), o.Name, o.Seconds*1000, o.Rows)
	if o.Detail != "" {
		b.WriteString("  " + strings.ReplaceAll(o.Detail, "\n", " "))
	}
	b.WriteByte('\n')
	for i := range o.Children {
		writeOperator(b, &o.Children[i], depth+1)
	}
}

type translateCmd struct {
	Expr string `arg:"" help:"PromQL expression."`

	Time     string        `name:"time" placeholder:"T" help:"Evaluation time of an instant query: RFC 3339, seconds since 1970, or now-1h. Default: now."`
	Start    string        `name:"start" placeholder:"T" help:"First step of a range query."`
	End      string        `name:"end" placeholder:"T" help:"Last step of a range query. Default: now."`
	Step     time.Duration `name:"step" placeholder:"DURATION" help:"Distance of a range query's steps. Default: 250 steps, at least 1s apart."`
	Lookback time.Duration `name:"lookback" default:"5m" min:"1ms" help:"How far back an instant selector looks for a sample; the server's --query.lookback-delta."`
}

// Run prints the statement, and on the standard error output what it leaves to promql().
func (c *translateCmd) Run(_ context.Context, io flags.Streams) error {
	q, err := newQuestion(c.Expr, c.Time, c.Start, c.End, c.Step, time.Now().Truncate(time.Second))
	if err != nil {
		return err
	}
	s, err := explain.Translate(request.Question{Text: q.expr, Start: q.start, End: q.end, Step: q.step, Lookback: c.Lookback})
	if err != nil {
		return err
	}
	for _, kept := range s.Kept {
		if _, err := fmt.Fprintln(io.Err, "left to promql():", kept); err != nil {
			return fmt.Errorf("print note: %w", err)
		}
	}
	return io.Print("the statement", s.SQL+";\n")
}
