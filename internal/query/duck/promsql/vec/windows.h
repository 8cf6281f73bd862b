// The aggregates as DuckDB sees them. For each range function there are three:
//
//	prom_rate(ts, value, window_start, window_end)   over (window_start, window_end]
//	prom_rate(ts, value, range)                      over (t - range, t] of the last row's time t
//	prom_rate(ts, value, grid)                       a list: over (t - range, t] for each step t of a spec
//
// Parameters of the function come where PromQL has them: phi first, others last; those of a grid
// are keys of the spec.
#pragma once

#include "register.h"

// Registers the aggregates of a range function, whose memory the budget counts. Returns 0, or 1
// with a message.
int prom_register_windows(duckdb_connection conn, const char *function, size_t len, int64_t budget, char err[PROM_ERROR_BYTES]);
