// The aggregates as DuckDB sees them.
#pragma once

#include "../../../../../third_party/duckdb/duckdb.h"
#include "samples.h"

// The extra info of an aggregate: a range function, over values or over the stored columns.
typedef struct {
	int fn;
	bool decoded;
} samples_function;

// Registers the aggregates, once per database. Returns 0, or 1 with a message.
int prom_register_samples(duckdb_connection conn, char err[PROM_ERROR_BYTES]);

void samples_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states);
void samples_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset);
