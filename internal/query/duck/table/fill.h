// Columns as DuckDB's types, and copies of rows into its vectors.
#pragma once

#include "table.h"

// Copies a column of rows rows. Returns false if there is no memory.
bool prom_table_fill(duckdb_vector out, const prom_table_vector *in, size_t rows);

// The type of a column. The caller destroys it.
duckdb_logical_type prom_table_type(int type);
