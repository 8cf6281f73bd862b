// The aggregates as DuckDB sees them. For each range function there are three:
//
//	prom_rate(ts, value, window_start, window_end)   over (window_start, window_end]
//	prom_rate(ts, value, range)                      over (t - range, t] of the last row's time t
//	prom_rate(ts, value, grid)                       a list: over (t - range, t] for each step t of a spec
//
// Parameters of the function come where PromQL has them: phi first, others last; those of a grid
// are keys of the spec.
#pragma once

#include "../vec/register.h"
#include "windowstate.h"

typedef enum { WINDOW_BOUNDS, WINDOW_SLIDES, WINDOW_GRID, WINDOW_FORMS } window_form; // the last one is their number

// What an aggregate computes, and the budget of its memory.
typedef struct {
	int fn;
	window_form form;
	prom_budget *budget;
} window_function;

// That of a call.
window_function window_of(duckdb_function_info info);

// Most parameters of an aggregate.
#define WINDOW_COLUMNS 6

// Positions of parameters. end is range in the second form, and grid in the third.
typedef struct {
	int ts, value, start, end, count;
	int parameters[2]; // -1: none
} window_columns;

window_columns window_columns_of(const window_function *f);

// Registers the aggregates of a range function, whose memory the budget counts. Returns 0, or 1
// with a message.
int prom_register_windows(duckdb_connection conn, const char *function, size_t len, int64_t budget, char err[PROM_ERROR_BYTES]);

void window_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states);
void window_combine(duckdb_function_info info, duckdb_aggregate_state *src, duckdb_aggregate_state *dst, idx_t n);
void window_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset);
