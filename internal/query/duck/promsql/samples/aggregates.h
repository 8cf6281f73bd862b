// The aggregates as DuckDB sees them.
#pragma once

#include "../../../../../third_party/duckdb/duckdb.h"
#include "samples.h"

// What a registered function is: one of the kernels, over values or over the columns that they are stored in.
typedef struct {
	int fn;
	bool decoded;
} samples_function;

// Registers the aggregates, once per database. Returns 0, or 1 with a message.
int prom_register_samples(duckdb_connection conn, char err[PROM_ERROR_BYTES]);

void samples_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states);
void samples_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset);
