#include "register.h"

extern const vec_aggregate agg_table_planes[], agg_table_quantile[], agg_table_topk[], agg_table_histogram[];

int prom_register_agg(duckdb_connection conn, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]) {
	const vec_aggregate *const tables[] = {agg_table_planes, agg_table_quantile, agg_table_topk, agg_table_histogram, NULL};
	return vec_register_aggregates(conn, tables, only, budget, err);
}
