#include "planes.h"

#include <stdio.h>

#include "rows.h"
#include "states.h"

// A state holds only the values of the first series until a second one arrives: many groups have
// one series, and planes are large.
typedef struct {
	prom_budget *budget; // alive as long as p is
	double *p;
	uint32_t n;  // steps: 1 as long as all lists had one element; 0: no series yet
	bool single; // p is a series, not planes
} state;

VEC_STATE(state, 0)

static void states_destroy(duckdb_aggregate_state *states, idx_t count) {
	for (idx_t i = 0; i < count; i++) {
		state *s = (state *)states[i];
		prom_free(s->p);
		*s = (state){0};
	}
}

void agg_planes_init(const agg_planes *op, double *p, uint32_t n) {
	for (uint32_t j = 0; j < op->planes; j++) {
		for (uint32_t k = 0; k < n; k++) {
			p[(size_t)j * n + k] = prom_from_bits(op->initial[j]);
		}
	}
}

// New planes of n steps that hold the one series v.
static double *planes_of(const agg_planes *op, prom_budget *b, const double *v, uint32_t n) {
	double *p = prom_alloc(b, sizeof(double) * op->planes * n);
	if (p != NULL) {
		agg_planes_init(op, p, n);
		op->add(p, n, n, v);
	}
	return p;
}

static void replace(state *s, double *p) {
	prom_free(s->p);
	s->p = p;
}

static bool unfold(state *s, const agg_planes *op) {
	double *p = planes_of(op, s->budget, s->p, s->n);
	if (p == NULL) {
		return false;
	}
	replace(s, p);
	s->single = false;
	return true;
}

// From one step, which stood for all, to n.
static bool widen(state *s, uint32_t planes, uint32_t n) {
	double *p = prom_alloc(s->budget, sizeof(double) * planes * n);
	if (p == NULL) {
		return false;
	}
	for (uint32_t j = 0; j < planes; j++) {
		for (uint32_t k = 0; k < n; k++) {
			p[(size_t)j * n + k] = s->p[j];
		}
	}
	replace(s, p);
	s->n = n;
	return true;
}

// Converts the state to planes that are wide enough for a list of n steps.
static bool prepare(state *s, const agg_planes *op, uint32_t n, char err[PROM_ERROR_BYTES]) {
	uint32_t both = vec_common(s->n, n);
	if (both == 0) {
		snprintf(err, PROM_ERROR_BYTES, "aggregate values: lists of %u and %u values in one group", s->n, n);
		return false;
	}
	if ((s->single && !unfold(s, op)) || (both > s->n && !widen(s, op->planes, both))) {
		return prom_memory_error(s->budget, err);
	}
	return true;
}

static bool add(state *s, const agg_planes *op, vec_list l, prom_budget *b, char err[PROM_ERROR_BYTES]) {
	if (s->n == 0) {
		double *p = prom_alloc(b, sizeof(double) * l.n);
		if (p == NULL) {
			return prom_memory_error(b, err);
		}
		memcpy(p, l.v, sizeof(double) * l.n);
		*s = (state){b, p, l.n, true};
		return true;
	}
	if (!prepare(s, op, l.n, err)) {
		return false;
	}
	if (l.n == s->n) {
		op->add(s->p, s->n, s->n, l.v);
		return true;
	}
	for (uint32_t k = 0; k < s->n; k++) {
		op->add(s->p + k, s->n, 1, l.v);
	}
	return true;
}

static bool move(void *from_, void *to_, const void *extra, char err[PROM_ERROR_BYTES]) {
	state *from = from_, *to = to_;
	const agg_planes *op = extra;
	if (from->n == 0) {
		return true;
	}
	if (to->n == 0) {
		*to = *from;
		*from = (state){0};
		return true;
	}
	if (from->single || op->merge == NULL) {
		return add(to, op, (vec_list){from->p, from->n}, to->budget, err);
	}
	if (!prepare(to, op, from->n, err)) {
		return false;
	}
	if (from->n == to->n) {
		op->merge(to->p, to->n, to->n, from->p, from->n);
		return true;
	}
	for (uint32_t k = 0; k < to->n; k++) {
		op->merge(to->p + k, to->n, 1, from->p, from->n);
	}
	return true;
}

static uint32_t steps(const void *s) {
	uint32_t n = ((const state *)s)->n;
	return n == 0 ? 1 : n;
}

static bool finish(void *state_, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
	state *s = state_;
	const agg_planes *op = extra;
	double *to = vec_out_next(out);
	if (s->n == 0) {
		if (op->empty != NULL) {
			to[0] = *op->empty;
		}
		vec_out_put(out, row, 1, op->empty != NULL);
		return true;
	}
	if (prom_cancelled(s->budget)) {
		return prom_cancel_error(err);
	}
	double *planes = s->single ? planes_of(op, s->budget, s->p, s->n) : s->p;
	if (planes == NULL) {
		return prom_memory_error(s->budget, err);
	}
	vec_out_put(out, row, s->n, op->finish(planes, s->n, s->n, to));
	if (s->single) {
		prom_free(planes);
	}
	return true;
}

static void update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states) {
	const agg_planes *op = duckdb_aggregate_function_get_extra_info(info);
	char err[PROM_ERROR_BYTES];
	vec_lists lists;
	bool ok = vec_lists_open(&lists, in, 0, err), has_spec = duckdb_data_chunk_get_column_count(in) > 1;
	vec_specs specs = {0};
	if (has_spec) {
		vec_specs_open(&specs, in, 1, op->required, 0);
	}
	prom_budget *budget = prom_budget_default();
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		if (has_spec) {
			const prom_spec *spec = vec_specs_at(&specs, i, err);
			ok = spec != NULL;
			budget = ok ? spec->budget : budget;
		}
		vec_list l = vec_list_at(&lists, i);
		ok = ok && (l.n == 0 || add((state *)states[i], op, l, budget, err));
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

// (v), (v, spec) and (i, v, spec)
#define ACROSS(name, op) {name, {VEC_LIST}, VEC_LIST, true, op, CALLBACKS}, {name, {VEC_UINTEGER, VEC_LIST, VEC_VARCHAR}, VEC_LIST, false, op, ORDERED}

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
