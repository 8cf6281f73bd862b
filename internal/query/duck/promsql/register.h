// DuckDB's side of the package: who registers which functions.
#pragma once

#include "duckdb.h"
#include "promsql.h"

// Each registers its functions on a connection's database, once per database. Returns 0, or 1 with a message in err.
int prom_register_range(duckdb_connection conn, char err[PROM_ERROR_BYTES]);
int prom_register_vec(duckdb_connection conn, char err[PROM_ERROR_BYTES]);
int prom_register_rows(duckdb_connection conn, char err[PROM_ERROR_BYTES]);
