#include "states.h"

void agg_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states, uint32_t keys, agg_add add) {
	const vec_extra *x = vec_extra_of(info);
	char err[PROM_ERROR_BYTES];
	vec_column ordinals = vec_column_of(in, 0);
	vec_lists lists;
	bool ok = vec_lists_open(&lists, in, 1, err);
	vec_specs specs = {0};
	bool has_spec = duckdb_data_chunk_get_column_count(in) > 2;
	prom_spec none = {.budget = vec_budget_of(x)};
	if (has_spec) {
		vec_specs_open(&specs, in, 2, keys, PROM_KEYS_GRID, x->own);
	}
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		vec_list l = vec_list_at(&lists, i);
		const prom_spec *spec = has_spec ? vec_specs_at(&specs, i, err) : &none;
		ok = spec != NULL;
		if (ok && l.n > 0 && vec_valid(ordinals.validity, i)) {
			ok = add(states[i], x->extra, ((const uint32_t *)ordinals.data)[i], l, spec, err);
		}
	}
	vec_specs_close(&specs);
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
	}
}

void agg_combine(duckdb_function_info info, duckdb_aggregate_state *from, duckdb_aggregate_state *to, idx_t count, agg_move move) {
	const void *extra = vec_extra_of(info)->extra;
	char err[PROM_ERROR_BYTES];
	for (idx_t i = 0; i < count; i++) {
		if (!move(from[i], to[i], extra, err)) {
			duckdb_aggregate_function_set_error(info, err);
			return;
		}
	}
}

void agg_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset, agg_steps steps,
                  agg_finish finish) {
	const void *extra = vec_extra_of(info)->extra;
	char err[PROM_ERROR_BYTES];
	idx_t elements = 0;
	for (idx_t i = 0; i < count; i++) {
		elements += steps(states[i]);
	}
	vec_out out;
	bool ok = vec_out_open(&out, result, elements, err);
	for (idx_t i = 0; ok && i < count; i++) {
		ok = finish(states[i], extra, &out, offset + i, err);
	}
	if (ok) {
		vec_out_close(&out);
	} else {
		duckdb_aggregate_function_set_error(info, err);
	}
}
