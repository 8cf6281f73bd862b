package plan

import (
	"math"

	"github.com/prometheus/prometheus/model/value"
)

func (n *constNode) compute(_ [][]Row, t *Tools) ([]Row, error) {
	return []Row{{0, t.Room.fill(n.shape.Grid.N, n.value)}}, nil
}

func (n *timeNode) compute(_ [][]Row, t *Tools) ([]Row, error) {
	v := t.Room(n.shape.Grid.N)
	for k := range v {
		v[k] = n.shape.Grid.seconds(k)
	}
	return []Row{{0, v}}, nil
}

// seconds returns the time of a step, as upstream calculates it.
func (g Grid) seconds(step int) float64 { return float64(g.Start+int64(step)*g.Step) / 1000 }

func (n *scalarNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	v, seen := t.Room.fill(n.shape.Grid.N, math.NaN()), make([]bool, n.shape.Grid.N)
	for _, r := range in[0] {
		for k, f := range r.V {
			switch {
			case value.IsStaleNaN(f):
			case seen[k]:
				v[k] = math.NaN()
			default:
				v[k], seen[k] = f, true
			}
		}
	}
	return []Row{{0, v}}, nil
}

func (n *vectorNode) compute(in [][]Row, _ *Tools) ([]Row, error) { return in[0], nil }

func (n *timesNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	out := make([]Row, len(in[0]))
	for i, r := range in[0] {
		v := t.Room(len(r.V))
		for k, f := range r.V {
			if v[k] = absent; !value.IsStaleNaN(f) {
				v[k] = n.shape.Grid.seconds(k)
			}
		}
		out[i] = Row{r.I, v}
	}
	return out, nil
}

func (n *absentNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	v := t.Room.fill(n.shape.Grid.N, 1)
	left := len(v)
	for _, r := range in[0] {
		for k, f := range r.V {
			if !value.IsStaleNaN(f) && !value.IsStaleNaN(v[k]) {
				v[k] = absent
				left--
			}
		}
	}
	if left == 0 {
		return nil, nil
	}
	return []Row{{0, v}}, nil
}

func (n *labelNode) compute(in [][]Row, _ *Tools) ([]Row, error) { return in[0], nil }

func (n *overNode) compute(in [][]Row, t *Tools) ([]Row, error) {
	return t.Over(n.fn, n.inner, n.spec, in[0])
}
