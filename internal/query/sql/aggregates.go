package sql

import (
	"context"
	"fmt"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/promlake/promlake/internal/query/duck/promsql"
)

// aggregatePrefix begins the names of PromQL's range functions as aggregates of SQL:
//
//	prom_rate(ts, value, window_start, window_end)
//
// is the value of rate() at window_end over the samples of the group in (window_start, window_end],
// NULL if it has none. The samples of a group have to be those of one series.
const aggregatePrefix = "prom_"

// aggregates are PromQL's range functions, sorted. before and after are their other parameters, in
// PromQL's order, as keys of the C functions' specs.
var aggregates = []struct {
	name   string
	before []string
	after  []string
}{
	{name: "avg_over_time"},
	{name: "changes"},
	{name: "count_over_time"},
	{name: "delta"},
	{name: "deriv"},
	{name: "double_exponential_smoothing", after: []string{"sf", "tf"}},
	{name: "first_over_time"},
	{name: "idelta"},
	{name: "increase"},
	{name: "irate"},
	{name: "last_over_time"},
	{name: "mad_over_time"},
	{name: "max_over_time"},
	{name: "min_over_time"},
	{name: "predict_linear", after: []string{"dur"}},
	{name: "present_over_time"},
	{name: "quantile_over_time", before: []string{"phi"}},
	{name: "rate"},
	{name: "resets"},
	{name: "stddev_over_time"},
	{name: "stdvar_over_time"},
	{name: "sum_over_time"},
	{name: "ts_of_first_over_time"},
	{name: "ts_of_last_over_time"},
	{name: "ts_of_max_over_time"},
	{name: "ts_of_min_over_time"},
}

// aggregateNames are the aggregates that statements may call.
var aggregateNames = func() (out []string) {
	for _, a := range aggregates {
		out = append(out, aggregatePrefix+a.name)
	}
	return out
}()

// aggregateMacros returns the statements that define the aggregates that a statement mentions over
// the functions in C, whose memory a budget counts. The spec of a group is that of its first row.
// The time is not cast to a TIMESTAMP, because that asks the calendar of a time zone for each row.
func aggregateMacros(text string, budget int) (out []string) {
	text = strings.ToLower(text)
	for _, a := range aggregates {
		if !strings.Contains(text, aggregatePrefix+a.name) {
			continue
		}
		spec := "'start=' || epoch_ms(window_end::TIMESTAMPTZ) || ' step=1 n=1 range=' || (epoch_ms(window_end::TIMESTAMPTZ) - epoch_ms(window_start::TIMESTAMPTZ))"
		for _, key := range append(append([]string{}, a.before...), a.after...) {
			spec += fmt.Sprintf(" || ' %s=' || %s::DOUBLE", key, key)
		}
		parameters := append(append(append([]string{}, a.before...), "ts", "value", "window_start", "window_end"), a.after...)
		out = append(out, fmt.Sprintf("CREATE MACRO %s%s(%s) AS system.main.%[1]s%[2]s(0::UBIGINT, make_timestamp(epoch_us(ts)), value::DOUBLE, %[4]s || ' budget=%[5]d')[1]",
			aggregatePrefix, a.name, strings.Join(parameters, ", "), spec, budget))
	}
	return out
}

// mentionsAggregates reports whether a statement may call an aggregate. To register them takes some
// milliseconds, which other statements need not wait for.
func mentionsAggregates(text string) bool {
	return strings.Contains(strings.ToLower(text), aggregatePrefix)
}

// registerAggregates prepares the database for the aggregates.
func (x *execution) registerAggregates(conn mapping.Connection) error {
	if err := promsql.Register(conn); err != nil {
		return err
	}
	macros := aggregateMacros(x.stmt.Text, x.budget.ID())
	if len(macros) == 0 {
		return nil
	}
	return run(conn, strings.Join(macros, "; "))
}

// openBudget opens the budget of the aggregates' memory, if the statement may call any. closeBudget
// is called when the database is closed.
func (x *execution) openBudget() {
	if mentionsAggregates(x.stmt.Text) {
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
