package plan

import "github.com/promlake/promlake/internal/query/plan/vector"

// Tools are what Compute needs of its caller.
type Tools struct {
	vector.Memory
	// Over evaluates a range function, named as in PromQL. The values of a row are its samples at
	// the times of a grid; where there is no value, there is no sample. Rows without a result are
	// left out.
	Over func(function string, times Grid, spec Spec, rows []vector.Row) ([]vector.Row, error)
}

// readBy returns the steps at which a node reads its children.
func readBy(n Node) Grid {
	if over, ok := n.(*overNode); ok {
		return over.inner
	}
	return n.Shape().Grid
}

// Driver is what calls the operators of a subtree over the values of its leaves.
type Driver string

// The drivers.
const (
	DirectDriver Driver = "direct" // Compute walks the plan
	DuckDBDriver Driver = "duckdb" // DuckDB runs the Statement
)

// Driver returns the driver of the subtree. A leaf alone needs no statement.
func (p *Pushed) Driver() Driver {
	if _, leaf := p.Root.(*Leaf); leaf || p.direct {
		return DirectDriver
	}
	return DuckDBDriver
}

// Computed is the number of values that Compute makes, at most: each has the size of one of the
// leaves.
func (p *Pushed) Computed() int64 {
	if !p.direct {
		return 0
	}
	leaves, all := valuesOf(nodesOf(p.Root), p.folds)
	return int64(all - leaves)
}

// Compute evaluates the subtree over the rows of its leaves, which are parallel to Leaves and
// ascending by ordinal, those of the groups of a fold. Where the buckets of a histogram are not
// monotonic, the error is ErrForcedMonotonicity. Rows may be those of a leaf.
func (p *Pushed) Compute(leaves [][]vector.Row, t *Tools) ([]vector.Row, error) {
	done := make(map[Node][]vector.Row, len(p.Leaves))
	for i, l := range p.Leaves {
		done[p.known(l)] = leaves[i]
	}
	return compute(p.Root, done, t)
}

func compute(n Node, done map[Node][]vector.Row, t *Tools) ([]vector.Row, error) {
	if rows, ok := done[n]; ok {
		return rows, nil
	}
	children := n.Children()
	in := make([][]vector.Row, len(children))
	for i, c := range children {
		rows, err := compute(c, done, t)
		if err != nil {
			return nil, err
		}
		if in[i] = rows; c.Shape().Grid.N == 1 {
			in[i] = t.Room.Spread(rows, readBy(n).N)
		}
	}
	rows, err := n.compute(in, t)
	done[n] = rows
	return rows, err
}
