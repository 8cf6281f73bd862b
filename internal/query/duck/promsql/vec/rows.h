// DuckDB's side of published rows.
#pragma once

#include "../../../../../third_party/duckdb/duckdb.h"
#include "../kernel/budget.h"

// Registers prom_rows on a connection's database, once per database. Returns 0, or 1 with a
// message.
int prom_register_rows(duckdb_connection conn, char err[PROM_ERROR_BYTES]);
