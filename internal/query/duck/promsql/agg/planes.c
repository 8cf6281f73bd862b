#include "planes.h"

#include "rows.h"
#include "state.h"
#include "states.h"

VEC_STATE(agg_state, 0)

static void states_destroy(duckdb_aggregate_state *states, idx_t count) {
	for (idx_t i = 0; i < count; i++) {
		agg_state_free((agg_state *)states[i]);
	}
}

static bool move(void *from, void *to, const void *op, char err[PROM_ERROR_BYTES]) { return agg_state_move(from, to, op, err); }

static uint32_t steps(const void *s) {
	uint32_t n = ((const agg_state *)s)->n;
	return n == 0 ? 1 : n;
}

static bool finish(void *state, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
	agg_state *s = state;
	const agg_planes *op = extra;
	double *to = vec_out_next(out);
	if (s->n == 0) {
		if (op->empty != NULL) {
			to[0] = *op->empty;
		}
		vec_out_put(out, row, 1, op->empty != NULL);
		return true;
	}
	bool any;
	if (!agg_state_result(s, op, to, &any, err)) {
		return false;
	}
	vec_out_put(out, row, s->n, any);
	return true;
}

static void update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states) {
	const vec_extra *x = vec_extra_of(info);
	const agg_planes *op = x->extra;
	char err[PROM_ERROR_BYTES];
	vec_lists lists;
	bool ok = vec_lists_open(&lists, in, 0, err), has_spec = duckdb_data_chunk_get_column_count(in) > 1;
	vec_specs specs = {0};
	if (has_spec) {
		vec_specs_open(&specs, in, 1, op->required, PROM_KEYS_GRID, x->own);
	}
	prom_budget *budget = vec_budget_of(x);
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		if (has_spec) {
			const prom_spec *spec = vec_specs_at(&specs, i, err);
			ok = spec != NULL;
			budget = ok ? spec->budget : budget;
		}
		vec_list l = vec_list_at(&lists, i);
		ok = ok && (l.n == 0 || agg_state_add((agg_state *)states[i], op, l, budget, err));
	}
	vec_specs_close(&specs);
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
	}
}

static void combine(duckdb_function_info info, duckdb_aggregate_state *from, duckdb_aggregate_state *to, idx_t count) {
	agg_combine(info, from, to, count, move);
}

static void finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset) {
	agg_finalize(info, states, result, count, offset, steps, finish);
}

#define CALLBACKS state_size, state_init, update, combine, finalize, states_destroy
#define ORDERED agg_ordered_size, agg_ordered_init, agg_ordered_update, agg_ordered_combine, agg_ordered_finalize, agg_rows_destroy

// (v), (v, spec), (i, v) and (i, v, spec)
#define ACROSS(name, op) {name, {VEC_LIST}, VEC_LIST, true, op, CALLBACKS}, {name, {VEC_UINTEGER, VEC_LIST}, VEC_LIST, true, op, ORDERED}

const vec_aggregate agg_table_planes[] = {
    ACROSS("prom_sum", &agg_planes_sum),
    ACROSS("prom_avg", &agg_planes_avg),
    ACROSS("prom_min", &agg_planes_min),
    ACROSS("prom_max", &agg_planes_max),
    ACROSS("prom_count", &agg_planes_count),
    ACROSS("prom_group", &agg_planes_group),
    ACROSS("prom_stddev", &agg_planes_stddev),
    ACROSS("prom_stdvar", &agg_planes_stdvar),
    {"prom_absent", {VEC_LIST, VEC_VARCHAR}, VEC_LIST, false, &agg_planes_absent, CALLBACKS},
    {"prom_scalar", {VEC_LIST, VEC_VARCHAR}, VEC_LIST, false, &agg_planes_scalar, CALLBACKS},
    {0},
};
