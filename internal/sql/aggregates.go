package sql

import (
	"maps"
	"slices"
	"strings"

	"github.com/duckdb/duckdb-go/v2/mapping"

	"github.com/promlake/promlake/internal/query/duck/promsql"
	"github.com/promlake/promlake/internal/sql/statement"
)

// functionPrefix begins the names of PromQL's functions in SQL. Range functions are aggregates over
// the samples of one series:
//
//	prom_rate(ts, value, window_start, window_end)   rate() at window_end over (window_start, window_end]
//	prom_rate(ts, value, range)                      rate() over (t - range, t], for the last row's t
//	prom_rate(ts, value, prom_window(grid, range))   a list of rate() at each step of a grid
//
// A window without a value is NULL. The second form is for OVER: a frame moves the last row.
const functionPrefix = "prom_"

// functions are those of PromQL that statements may call.
var functions = func() map[string]statement.Function {
	out := map[string]statement.Function{
		functionPrefix + "double_exponential_smoothing": {After: 2},
		functionPrefix + "predict_linear":               {After: 1},
		functionPrefix + "quantile_over_time":           {Before: 1},
	}
	for names, f := range map[string]statement.Function{
		`avg_over_time changes count_over_time delta deriv first_over_time idelta increase instant irate last_over_time mad_over_time
		max_over_time min_over_time present_over_time rate resets stddev_over_time stdvar_over_time sum_over_time timestamp
		ts_of_first_over_time ts_of_last_over_time ts_of_max_over_time ts_of_min_over_time`: {},
		`absent avg binary bottomk count group histogram_quantile limitk math max min over points quantile scalar stddev stdvar sum time
		topk`: {Kind: statement.Lists},
		"by grid include label label_replace labels order timestamps window without": {Kind: statement.Macro},
	} {
		for name := range strings.FieldsSeq(names) {
			out[functionPrefix+name] = f
		}
	}
	return out
}()

// macros define the functions of grids, and of maps of labels, whose keys ascend. The time is a
// value at each step, which the operator and keeps where v has a value.
const macros = `
CREATE MACRO prom_grid(start, stop, step) AS
	'start=' || epoch_ms(start::TIMESTAMPTZ) || ' step=' || epoch_ms(step::INTERVAL) || ' n=' || ((epoch_ms(stop::TIMESTAMPTZ) - epoch_ms(start::TIMESTAMPTZ)) // epoch_ms(step::INTERVAL) + 1);
CREATE MACRO prom_window(grid, width) AS grid || ' range=' || epoch_ms(width::INTERVAL),
	(grid, width, back) AS grid || ' range=' || epoch_ms(width::INTERVAL) || ' offset=' || epoch_ms(back::INTERVAL);
CREATE MACRO prom_timestamps(v, grid) AS prom_binary('and', prom_time(grid), v);
CREATE MACRO prom_order(labels) AS (row_number() OVER (ORDER BY labels))::UINTEGER, (metric, labels) AS (row_number() OVER (ORDER BY metric, labels))::UINTEGER;
CREATE MACRO prom_labels(names, vals) AS map(names::VARCHAR[], vals::VARCHAR[]);
CREATE MACRO prom_by(labels, names) AS map_from_entries(list_filter(map_entries(labels), lambda e: list_contains(names::VARCHAR[], e.key)));
CREATE MACRO prom_without(labels, names) AS map_from_entries(list_filter(map_entries(labels), lambda e: NOT list_contains(names::VARCHAR[], e.key)));
CREATE MACRO prom_include(labels, other, names) AS map_from_entries(list_sort(map_entries(prom_without(labels, names)) || map_entries(prom_by(other, names))));
CREATE MACRO prom_label(labels, name, val) AS prom_include(labels, map_from_entries(CASE WHEN val <> '' THEN [{'key': name::VARCHAR, 'value': val::VARCHAR}] ELSE [] END), [name]);
CREATE MACRO prom_label_replace(labels, target, replacement, source, pattern) AS
	CASE WHEN regexp_full_match(coalesce(labels[source], ''), pattern, 's')
	THEN prom_label(labels, target, regexp_replace(coalesce(labels[source], ''), '^(?s:' || pattern || ')$', replacement)) ELSE labels END;
`

// register adds the functions to the database of a session.
func (s *session) register(conn mapping.Connection) error {
	var windows, lists []string
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		switch functions[name].Kind {
		case statement.Windows:
			windows = append(windows, strings.TrimPrefix(name, functionPrefix))
		case statement.Lists:
			lists = append(lists, name)
		}
	}
	if err := promsql.RegisterWindows(conn, s.budget, windows); err != nil {
		return err
	}
	return promsql.RegisterLists(conn, s.budget, lists)
}
