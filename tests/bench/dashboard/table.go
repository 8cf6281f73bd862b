package dashboard

import (
	"fmt"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/tests/bench/table"
)

// rows is the table: a row for each store and range.
func rows(results []result) [][]string {
	out := [][]string{{fmt.Sprintf("store, range of %d panels", panels), "opened: gets", "lists", "refreshed: gets", "lists"}}
	for _, r := range results {
		row := []string{fmt.Sprintf("%s, %s", r.Store, model.Duration(r.Range))}
		for _, n := range []requests{r.Opened, r.Refreshed} {
			row = append(row, fmt.Sprint(n.Gets), fmt.Sprint(n.Lists))
		}
		out = append(out, row)
	}
	return out
}

// comparisons are the requests of all ranges together, for each store.
func comparisons(results []result, ranges int) (out []table.Comparison) {
	name := func(r result, what string) string {
		return fmt.Sprintf("a dashboard of %d panels over %s, %d ranges: %s", panels, r.Store, ranges, what)
	}
	for _, r := range results {
		opened := name(r, "opened")
		if len(out) == 0 || out[len(out)-2].Name != opened {
			out = append(out, table.Comparison{Name: opened, Unit: unit}, table.Comparison{Name: name(r, "refreshed"), Unit: unit})
		}
		out[len(out)-2].Promlake += r.Opened.Gets + r.Opened.Lists
		out[len(out)-1].Promlake += r.Refreshed.Gets + r.Refreshed.Lists
	}
	return out
}

const unit = "requests to the store"
