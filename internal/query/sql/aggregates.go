package sql

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/query/sql/statement"
)

// aggregatePrefix begins the names of PromQL's range functions as aggregates of SQL, over the samples
// of one series:
//
//	prom_rate(ts, value, window_start, window_end)   rate() at window_end over (window_start, window_end]
//	prom_rate(ts, value, range)                      rate() over (t - range, t], for the last row's t
//
// A window without a value is NULL. The second form is for OVER: a frame moves the last row.
const aggregatePrefix = "prom_"

// aggregates are those that statements may call.
var aggregates = map[string]statement.Aggregate{
	aggregatePrefix + "avg_over_time":                {},
	aggregatePrefix + "changes":                      {},
	aggregatePrefix + "count_over_time":              {},
	aggregatePrefix + "delta":                        {},
	aggregatePrefix + "deriv":                        {},
	aggregatePrefix + "double_exponential_smoothing": {After: 2},
	aggregatePrefix + "first_over_time":              {},
	aggregatePrefix + "idelta":                       {},
	aggregatePrefix + "increase":                     {},
	aggregatePrefix + "irate":                        {},
	aggregatePrefix + "last_over_time":               {},
	aggregatePrefix + "mad_over_time":                {},
	aggregatePrefix + "max_over_time":                {},
	aggregatePrefix + "min_over_time":                {},
	aggregatePrefix + "predict_linear":               {After: 1},
	aggregatePrefix + "present_over_time":            {},
	aggregatePrefix + "quantile_over_time":           {Before: 1},
	aggregatePrefix + "rate":                         {},
	aggregatePrefix + "resets":                       {},
	aggregatePrefix + "stddev_over_time":             {},
	aggregatePrefix + "stdvar_over_time":             {},
	aggregatePrefix + "sum_over_time":                {},
	aggregatePrefix + "ts_of_first_over_time":        {},
	aggregatePrefix + "ts_of_last_over_time":         {},
	aggregatePrefix + "ts_of_max_over_time":          {},
	aggregatePrefix + "ts_of_min_over_time":          {},
}

// mentionedAggregates are the range functions that a statement may call as aggregates. To register
// all of them takes some milliseconds.
func mentionedAggregates(text string) (out []string) {
	text = strings.ToLower(text)
	for _, name := range slices.Sorted(maps.Keys(aggregates)) {
		if strings.Contains(text, name) {
			out = append(out, strings.TrimPrefix(name, aggregatePrefix))
		}
	}
	return out
}

// registerAggregates prepares the database for the aggregates.
func (x *execution) registerAggregates(conn mapping.Connection) error {
	return promsql.RegisterWindows(conn, x.budget, mentionedAggregates(x.stmt.Text))
}

// openBudget opens the budget of the aggregates' memory, if the statement may call any. closeBudget
// is called when the database is closed.
func (x *execution) openBudget() {
	if len(mentionedAggregates(x.stmt.Text)) > 0 {
		x.budget = promsql.NewBudget(x.Settings.MemoryBytes)
		x.stopCancel = context.AfterFunc(x.ctx, x.budget.Cancel)
	}
}

func (x *execution) closeBudget() error {
	if x.budget == nil {
		return nil
	}
	x.stopCancel()
	x.budget.Reclaim() // states of a statement that failed
	return x.budget.Close()
}
