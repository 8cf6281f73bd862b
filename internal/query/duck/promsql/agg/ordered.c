// The overloads of the aggregates of planes.h with an ordinal keep all series and add them in the
// order of their ordinals, as upstream's engine does, so results equal upstream's to the bit. The
// overloads without an ordinal keep one state per group and add in any order.
#include "planes.h"
#include "rows.h"

idx_t agg_ordered_size(duckdb_function_info info) {
	(void)info;
	return sizeof(agg_rows);
}

void agg_ordered_init(duckdb_function_info info, duckdb_aggregate_state s) {
	(void)info;
	*(agg_rows *)s = (agg_rows){0};
}

void agg_ordered_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states) {
	char err[PROM_ERROR_BYTES];
	vec_column ordinals = vec_column_of(in, 0);
	vec_lists lists;
	bool ok = vec_lists_open(&lists, in, 1, err);
	vec_specs specs;
	vec_specs_open(&specs, in, 2, 0, 0);
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		vec_list l = vec_list_at(&lists, i);
		const prom_spec *spec = vec_specs_at(&specs, i, err);
		ok = spec != NULL;
		if (ok && l.n > 0 && vec_valid(ordinals.validity, i)) {
			agg_row row = {.i = ((const uint32_t *)ordinals.data)[i], .n = l.n, .v = (double *)(uintptr_t)l.v};
			ok = agg_rows_add((agg_rows *)states[i], row, spec->budget, err);
		}
	}
	vec_specs_close(&specs);
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
	}
}

void agg_ordered_combine(duckdb_function_info info, duckdb_aggregate_state *from, duckdb_aggregate_state *to, idx_t count) {
	char err[PROM_ERROR_BYTES];
	for (idx_t i = 0; i < count; i++) {
		if (!agg_rows_move((agg_rows *)from[i], (agg_rows *)to[i], err)) {
			duckdb_aggregate_function_set_error(info, err);
			return;
		}
	}
}

// Writes the result of a state that has rows. Returns false with a message.
static bool finish(agg_rows *rows, const agg_planes *op, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
	double *p = agg_rows_cancelled(rows, err) ? NULL : agg_rows_scratch(rows, (size_t)op->planes * rows->n, sizeof *p, err);
	if (p == NULL) {
		return false;
	}
	agg_rows_by_ordinal(rows);
	op->init(p, rows->n, rows->n);
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
	const agg_planes *op = duckdb_aggregate_function_get_extra_info(info);
	char err[PROM_ERROR_BYTES] = "write values: the machine has no memory for them";
	idx_t elements = 0;
	for (idx_t i = 0; i < count; i++) {
		elements += ((const agg_rows *)states[i])->n;
	}
	vec_out out;
	bool ok = vec_out_open(&out, result, elements);
	for (idx_t i = 0; ok && i < count; i++) {
		agg_rows *rows = (agg_rows *)states[i];
		if (rows->count == 0) {
			vec_out_null(&out, offset + i);
		} else {
			ok = finish(rows, op, &out, offset + i, err);
		}
	}
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
		return;
	}
	vec_out_close(&out);
}
