// The overloads of the aggregates with an ordinal keep all series and add them in the order of
// their ordinals, as upstream's engine does, so results equal upstream's to the bit. Their state is
// agg_rows. The overloads without an ordinal keep one state per group and add in any order.
#include "planes.h"

#include "rows.h"
#include "state.h"

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
	const agg_planes *op = vec_aggregate_of(info)->extra;
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

static bool add_row(void *rows, const void *op, uint32_t i, vec_list l, const prom_spec *spec, char err[PROM_ERROR_BYTES]) {
	(void)op;
	return agg_rows_add(rows, (agg_row){.i = i, .n = l.n, .v = (double *)(uintptr_t)l.v}, spec->budget, err);
}

static bool move_rows(void *from, void *to, const void *op, char err[PROM_ERROR_BYTES]) {
	(void)op;
	return agg_rows_move(from, to, err);
}

static uint32_t steps_of_rows(const void *rows) { return ((const agg_rows *)rows)->n; }

static bool finish_rows(void *state, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
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

#define LISTS .size = sizeof(agg_state), .destroy = states_destroy, .update = update, .move = move, .steps = steps, .finish = finish
#define ROWS .size = sizeof(agg_rows), .destroy = agg_rows_destroy, .add = add_row, .move = move_rows, .steps = steps_of_rows, .finish = finish_rows

// (v), (v, spec), (i, v) and (i, v, spec)
#define ACROSS(id, op) \
	{.name = id, .parameters = {VEC_LIST}, .result = VEC_LIST, .spec = true, .extra = op, LISTS}, \
	{.name = id, .parameters = {VEC_UINTEGER, VEC_LIST}, .result = VEC_LIST, .spec = true, .extra = op, ROWS}

const vec_aggregate agg_table_planes[] = {
    ACROSS("prom_sum", &agg_planes_sum),
    ACROSS("prom_avg", &agg_planes_avg),
    ACROSS("prom_min", &agg_planes_min),
    ACROSS("prom_max", &agg_planes_max),
    ACROSS("prom_count", &agg_planes_count),
    ACROSS("prom_group", &agg_planes_group),
    ACROSS("prom_stddev", &agg_planes_stddev),
    ACROSS("prom_stdvar", &agg_planes_stdvar),
    {.name = "prom_absent", .parameters = {VEC_LIST, VEC_VARCHAR}, .result = VEC_LIST, .extra = &agg_planes_absent, LISTS},
    {.name = "prom_scalar", .parameters = {VEC_LIST, VEC_VARCHAR}, .result = VEC_LIST, .extra = &agg_planes_scalar, LISTS},
    {0},
};
