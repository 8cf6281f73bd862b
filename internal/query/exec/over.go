package exec

import (
	"fmt"

	"github.com/prometheus/prometheus/model/value"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/vector"
)

// over is plan.Tools.Over: the kernel that prom_over calls in a statement.
func (r *Run) over(function string, times plan.Grid, spec plan.Spec, rows []vector.Row) ([]vector.Row, error) {
	k, err := promsql.NewKernel("prom_"+function, fmt.Sprintf("%s budget=%d", spec, r.Budget.ID()))
	if err != nil {
		return nil, err
	}
	defer k.Close()
	all := make([]int64, times.N)
	for i := range all {
		all[i] = times.Start + int64(i)*times.Step
	}
	var some []int64
	var values []float64
	complete := false // the row before has a value at each time
	out := make([]vector.Row, 0, len(rows))
	for _, row := range rows {
		t, v, facts := all, row.V, promsql.NoStale
		some, values = some[:0], values[:0]
		for i, f := range row.V {
			if !value.IsStaleNaN(f) {
				some, values = append(some, all[i]), append(values, f)
			}
		}
		if len(values) < len(row.V) {
			t, v = some, values
		} else if complete {
			facts |= promsql.SameTimes
		}
		complete = len(v) == len(all)
		results := r.room.take(spec.Grid.N)
		present, err := k.Eval(t, v, results, facts)
		if err != nil {
			return nil, err
		}
		if present {
			out = append(out, vector.Row{I: row.I, V: results})
		}
	}
	return out, nil
}
