// Aggregates across series.
#pragma once

#include "../vec/register.h"

// Registers the aggregates across series, once per database. The arguments are those of
// vec_register_aggregates.
int prom_register_agg(duckdb_connection conn, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]);
