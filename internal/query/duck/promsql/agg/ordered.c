// The overloads of the aggregates of planes.h with an ordinal keep all series and add them in the
// order of their ordinals, as upstream's engine does, so results equal upstream's to the bit. The
// overloads without an ordinal keep one state per group and add in any order.
#include "planes.h"
#include "rows.h"
#include "states.h"

idx_t agg_ordered_size(duckdb_function_info info) {
	(void)info;
	return sizeof(agg_rows);
}

void agg_ordered_init(duckdb_function_info info, duckdb_aggregate_state s) {
	(void)info;
	*(agg_rows *)s = (agg_rows){0};
}

static bool add(void *rows, const void *op, uint32_t i, vec_list l, const prom_spec *spec, char err[PROM_ERROR_BYTES]) {
	(void)op;
	return agg_rows_add(rows, (agg_row){.i = i, .n = l.n, .v = (double *)(uintptr_t)l.v}, spec->budget, err);
}

void agg_ordered_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states) { agg_update(info, in, states, 0, add); }

static bool move(void *from, void *to, const void *op, char err[PROM_ERROR_BYTES]) {
	(void)op;
	return agg_rows_move(from, to, err);
}

void agg_ordered_combine(duckdb_function_info info, duckdb_aggregate_state *from, duckdb_aggregate_state *to, idx_t count) {
	agg_combine(info, from, to, count, move);
}

static uint32_t steps(const void *rows) { return ((const agg_rows *)rows)->n; }

static bool finish(void *state, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
	agg_rows *rows = state;
	const agg_planes *op = extra;
	if (rows->count == 0) {
		vec_out_null(out, row);
		return true;
	}
	double *p = agg_rows_cancelled(rows, err) ? NULL : agg_rows_scratch(rows, (size_t)op->planes * rows->n, sizeof *p, err);
	if (p == NULL) {
		return false;
	}
	agg_rows_by_ordinal(rows);
	agg_planes_init(op, p, rows->n);
	for (uint32_t r = 0; r < rows->count; r++) {
		const agg_row *one = &rows->rows[r];
		for (uint32_t k = 0; one->n < rows->n && k < rows->n; k++) {
			op->add(p + k, rows->n, 1, one->v);
		}
		if (one->n == rows->n) {
			op->add(p, rows->n, rows->n, one->v);
		}
	}
	vec_out_put(out, row, rows->n, op->finish(p, rows->n, rows->n, vec_out_next(out)));
	prom_free(p);
	return true;
}

void agg_ordered_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset) {
	agg_finalize(info, states, result, count, offset, steps, finish);
}
