// Aggregates across series.
#pragma once

#include "../vec/register.h"

// Registers the aggregates across series, once per database. Returns 0, or 1 with a message.
int prom_register_agg(duckdb_connection conn, char err[PROM_ERROR_BYTES]);
