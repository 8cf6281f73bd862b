// The aggregates as DuckDB sees them.
#pragma once

#include "agg.h"
#include "register.h"

// What a registered function is: one of the kernels, over values or over the columns that they are stored in.
typedef struct {
	int fn;
	bool decoded;
} agg_function;

void agg_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states);
void agg_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset);
