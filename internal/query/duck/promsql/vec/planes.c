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

static bool add(void *state, const void *op, const vec_row *row, char err[PROM_ERROR_BYTES]) {
	return agg_state_add(state, op, row->list, row->spec->budget, err);
}

static bool add_row(void *rows, const void *op, const vec_row *row, char err[PROM_ERROR_BYTES]) {
	(void)op;
	return agg_rows_add(rows, row, err);
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
	agg_rows_by_ordinal(rows);
	agg_state all = {0};
	bool any = false, ok = true;
	for (uint32_t r = 0; ok && r < rows->count; r++) {
		ok = agg_state_add(&all, op, (vec_list){rows->rows[r].v, rows->rows[r].n}, rows->budget, err);
	}
	ok = ok && agg_state_result(&all, op, vec_out_next(out), &any, err);
	agg_state_free(&all);
	vec_out_put(out, row, rows->n, any);
	return ok;
}

#define LISTS .size = sizeof(agg_state), .destroy = states_destroy, .add = add, .move = move, .steps = steps, .finish = finish
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
    {.name = "prom_absent", .parameters = {VEC_LIST, VEC_VARCHAR}, .result = VEC_LIST, .keys = PROM_KEY_N, .extra = &agg_planes_absent, LISTS},
    {.name = "prom_scalar", .parameters = {VEC_LIST, VEC_VARCHAR}, .result = VEC_LIST, .keys = PROM_KEY_N, .extra = &agg_planes_scalar, LISTS},
    {0},
};
