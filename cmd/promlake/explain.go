package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/promlake/promlake/internal/app/human"
)

// explanation is what /api/v1/explain answers, as far as it is printed.
type explanation struct {
	Engine string `json:"engine"`
	Pushed []struct {
		Name       string        `json:"name"`
		Expr       string        `json:"expr"`
		Tree       explainedNode `json:"tree"`
		Statements []struct {
			SQL   string `json:"sql"`
			Files []struct {
				Key       string `json:"key"`
				RowGroups share  `json:"rowGroups"`
				Bytes     share  `json:"bytes"`
			} `json:"files"`
			Analysis *struct {
				Seconds   float64 `json:"seconds"`
				Rows      int64   `json:"rows"`
				PeakBytes int64   `json:"peakBytes"`
				Leaves    []struct {
					Op      string  `json:"op"`
					Seconds float64 `json:"seconds"`
					Samples int64   `json:"samples"`
					Rows    int64   `json:"rows"`
				} `json:"leaves"`
				Operator *operator `json:"operator"`
			} `json:"analysis"`
		} `json:"statements"`
	} `json:"pushed"`
	Kept      []string `json:"kept"`
	Selectors []struct {
		Selector string `json:"selector"`
		Series   int    `json:"series"`
		Samples  int64  `json:"samples"`
		Segments int    `json:"segments"`
		Blocks   int    `json:"blocks"`
	} `json:"selectors"`
	Cost struct {
		Lists   int     `json:"lists"`
		Gets    int     `json:"gets"`
		Bytes   int64   `json:"bytes"`
		Dollars float64 `json:"dollars"`
	} `json:"cost"`
}

type share struct {
	Considered int64 `json:"considered"`
	Read       int64 `json:"read"`
}

type explainedNode struct {
	Op       string          `json:"op"`
	Series   int             `json:"series"`
	Samples  int64           `json:"samples"`
	Children []explainedNode `json:"children"`
}

type operator struct {
	Name     string     `json:"name"`
	Detail   string     `json:"detail"`
	Rows     int64      `json:"rows"`
	Seconds  float64    `json:"seconds"`
	Children []operator `json:"children"`
}

// explain asks the server at base how it answers the question, and prints that: as text, or as the JSON under "data".
func (q question) explain(ctx context.Context, client *http.Client, base string, analyze bool, w io.Writer, format string) error {
	_, form := q.request()
	if analyze {
		form.Set("analyze", "true")
	}
	var a struct {
		envelope
		Data json.RawMessage `json:"data"`
	}
	if err := post(ctx, client, base+"/api/v1/explain", form, &a); err != nil {
		return err
	}
	if err := a.failure(); err != nil {
		return err
	}
	if format == "json" {
		_, err := fmt.Fprintf(w, "%s\n", a.Data)
		return err
	}
	var e explanation
	if err := json.Unmarshal(a.Data, &e); err != nil {
		return fmt.Errorf("read explanation: %w", err)
	}
	_, err := io.WriteString(w, e.text())
	return err
}

func (e *explanation) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "engine: %s\n", e.Engine)
	for _, k := range e.Kept {
		fmt.Fprintf(&b, "kept: %s\n", k)
	}
	for _, s := range e.Selectors {
		fmt.Fprintf(&b, "selector %s: %d series, %d samples in %d segments and %d blocks\n", s.Selector, s.Series, s.Samples, s.Segments, s.Blocks)
	}
	for _, p := range e.Pushed {
		fmt.Fprintf(&b, "\npushed %s: %s\n", p.Name, p.Expr)
		p.Tree.text(&b, 1)
		for _, s := range p.Statements {
			for _, f := range s.Files {
				groups := ""
				if f.RowGroups.Considered > 0 { // segments and rollups have none
					groups = fmt.Sprintf("%d of %d row groups, ", f.RowGroups.Read, f.RowGroups.Considered)
				}
				fmt.Fprintf(&b, "  file %s: %s%s of %s\n", f.Key, groups, human.Bytes(f.Bytes.Read), human.Bytes(f.Bytes.Considered))
			}
			fmt.Fprintf(&b, "  %s;\n", s.SQL)
			if a := s.Analysis; a != nil {
				fmt.Fprintf(&b, "  took %.1f ms, %d rows, aggregates held %s\n", a.Seconds*1000, a.Rows, human.Bytes(a.PeakBytes))
				for _, l := range a.Leaves {
					fmt.Fprintf(&b, "    %s: %.1f ms, %d samples, %d rows\n", l.Op, l.Seconds*1000, l.Samples, l.Rows)
				}
				if a.Operator != nil {
					a.Operator.text(&b, 2)
				}
			}
		}
	}
	c := e.Cost
	fmt.Fprintf(&b, "\nstore: %d LIST, %d GET, $%.7f; samples of %s are read\n", c.Lists, c.Gets, c.Dollars, human.Bytes(c.Bytes))
	return b.String()
}

func (n *explainedNode) text(b *strings.Builder, depth int) {
	fmt.Fprintf(b, "%s%s: %d series", strings.Repeat("  ", depth), n.Op, n.Series)
	if n.Samples > 0 {
		fmt.Fprintf(b, ", %d samples", n.Samples)
	}
	b.WriteByte('\n')
	for i := range n.Children {
		n.Children[i].text(b, depth+1)
	}
}

func (o *operator) text(b *strings.Builder, depth int) {
	fmt.Fprintf(b, "%s%s: %.1f ms, %d rows", strings.Repeat("  ", depth), o.Name, o.Seconds*1000, o.Rows)
	if o.Detail != "" {
		b.WriteString("  " + strings.ReplaceAll(o.Detail, "\n", " "))
	}
	b.WriteByte('\n')
	for i := range o.Children {
		o.Children[i].text(b, depth+1)
	}
}
