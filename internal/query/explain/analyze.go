package explain

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/exec"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/vector"
)

// Analysis describes one execution of a statement. Its leaves are evaluated while their samples are
// read; DuckDB evaluates the rest.
type Analysis struct {
	Seconds   float64   `json:"seconds"` // with planning
	Rows      int64     `json:"rows"`    // of the result
	PeakBytes int64     `json:"peakBytes"`
	Leaves    []Leaf    `json:"leaves"`
	Operator  *Operator `json:"operator,omitempty"` // the last of DuckDB's; none if no statement runs
}

// Leaf describes how a leaf's samples were read.
type Leaf struct {
	Op      string  `json:"op"`
	Seconds float64 `json:"seconds"`
	Samples int64   `json:"samples"` // that were read
	Rows    int64   `json:"rows"`    // of its result
}

// Operator is one of DuckDB's operators, as its profiler saw it.
type Operator struct {
	Name     string     `json:"name"`
	Detail   string     `json:"detail,omitempty"`
	Rows     int64      `json:"rows"`
	Seconds  float64    `json:"seconds"` // of all threads, without its children
	Children []Operator `json:"children,omitempty"`
}

// analysis evaluates the leaves of a subtree, and runs its statement over their values under
// DuckDB's profiler.
func (e *explainer) analysis(ctx context.Context, s *plan.Pushed) (*Analysis, error) {
	out, start := &Analysis{}, time.Now()
	err := e.Budgeted(ctx, 1, func(r *exec.Run) error {
		if err := r.HoldValues(s); err != nil {
			return err
		}
		leaves := make([]*exec.Values, len(s.Leaves))
		for i, l := range s.Leaves {
			start := time.Now()
			rows, err := r.Leaf(ctx, s, l)
			if err != nil {
				return err
			}
			leaves[i] = rows
			out.Leaves = append(out.Leaves, Leaf{Op: l.String(), Seconds: time.Since(start).Seconds(), Samples: rows.Samples, Rows: int64(len(rows.I))})
		}
		var err error
		if s.Driver() == plan.DirectDriver {
			var rows []vector.Row
			rows, err = r.Compute(s, leaves)
			out.Rows = int64(len(rows))
		} else {
			err = e.profile(ctx, r, s, leaves, out)
		}
		out.Seconds, out.PeakBytes = time.Since(start).Seconds(), r.Budget.Peak()
		return err
	})
	return out, err
}

// profile runs a statement for its profile.
func (e *explainer) profile(ctx context.Context, r *exec.Run, s *plan.Pushed, leaves []*exec.Values, out *Analysis) error {
	scans, release := exec.Published(leaves)
	defer release()
	st := s.Statement(scans, strconv.Itoa(r.Budget.ID()))
	var profile strings.Builder
	err := e.DB.Each(ctx, "EXPLAIN (ANALYZE, FORMAT json) "+st.SQL, st.Args, []string{duck.Varchar, duck.Varchar}, func(n int, cols []duck.Vector) error {
		for _, v := range cols[1].Strings()[:n] {
			profile.WriteString(v.String())
		}
		return nil
	})
	if r.Budget.ForcedMonotonicity() {
		return plan.ErrForcedMonotonicity
	}
	if err != nil {
		return err
	}
	// The first nodes of a profile are the statement and the EXPLAIN itself.
	var root profiled
	if err := json.Unmarshal([]byte(profile.String()), &root); err != nil {
		return fmt.Errorf("read profile: %w", err)
	}
	for len(root.Children) == 1 && (root.Name == "" || strings.HasPrefix(root.Name, "EXPLAIN")) {
		root = root.Children[0]
	}
	op := root.operator()
	out.Operator, out.Rows = &op, root.Rows
	return nil
}

// profiled is a node of DuckDB's profile.
type profiled struct {
	Name     string         `json:"operator_name"`
	Rows     int64          `json:"operator_cardinality"`
	Seconds  float64        `json:"operator_timing"`
	Extra    map[string]any `json:"extra_info"`
	Children []profiled     `json:"children"`
}

// maxDetail bounds the text about an operator, in bytes: lists of files and BLOBs can be megabytes.
const maxDetail = 300

func (p *profiled) operator() Operator {
	out := Operator{Name: strings.TrimSpace(p.Name), Rows: p.Rows, Seconds: p.Seconds}
	for _, k := range []string{"Function", "CTE Name", "Groups", "Aggregates", "Projections", "Conditions", "Filters"} {
		v, ok := p.Extra[k]
		if !ok {
			continue
		}
		text := fmt.Sprint(v)
		if len(text) > maxDetail {
			text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
		}
		if out.Detail != "" {
			out.Detail += "; "
		}
		out.Detail += k + ": " + text
	}
	for i := range p.Children {
		out.Children = append(out.Children, p.Children[i].operator())
	}
	return out
}
