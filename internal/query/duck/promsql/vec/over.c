// prom_over: a range function over a subquery, whose values on the inner grid are the samples.
#include "register.h"

#include <stdio.h>

#include "../kernel/range.h"

// Room for the samples of one series.
typedef struct {
	int64_t *ts;
	double *v;
	int64_t n;
} samples;

static void samples_free(samples *s) {
	prom_free(s->ts);
	prom_free(s->v);
	*s = (samples){0};
}

static bool samples_grow(samples *s, int64_t n, prom_budget *b, char err[PROM_ERROR_BYTES]) {
	if (s->n >= n) {
		return true;
	}
	samples_free(s);
	*s = (samples){prom_alloc(b, sizeof *s->ts * (size_t)n), prom_alloc(b, sizeof *s->v * (size_t)n), n};
	if (s->ts == NULL || s->v == NULL) {
		samples_free(s);
		return prom_memory_error(b, err);
	}
	return true;
}

// The steps that have a value. Returns how many there are.
static uint32_t collect(samples *s, vec_list l, const prom_spec *grid) {
	uint32_t n = 0;
	size_t stride = vec_stride(l);
	for (uint32_t k = 0; k < grid->n; k++) {
		double v = l.v[k * stride];
		s->ts[n] = grid->start + (int64_t)k * grid->step;
		s->v[n] = v;
		n += !prom_is_absent(v);
	}
	return n;
}

// One row: a list of the outer grid's length or NULL.
static bool over(int fn, vec_list l, const prom_spec *inner, const prom_spec *outer, bool bounded, samples *s, duckdb_vector result, idx_t row,
                 char err[PROM_ERROR_BYTES]) {
	if (l.n > 1 && l.n != inner->n) {
		snprintf(err, PROM_ERROR_BYTES, "evaluate subquery: a list of %u values on a grid of %lld steps", l.n, (long long)inner->n);
		return false;
	}
	if (prom_cancelled(outer->budget)) {
		return prom_cancel_error(err);
	}
	if (!samples_grow(s, inner->n, outer->budget, err)) {
		return false;
	}
	uint32_t n = l.n == 0 ? 0 : collect(s, l, inner);
	int64_t width = outer->range / inner->step + 1;
	if (bounded && !prom_windows_fit(outer, width < n ? width : n, err)) {
		return false;
	}
	vec_out out;
	if (!vec_out_open(&out, result, n == 0 ? 0 : (idx_t)outer->n, err)) {
		return false;
	}
	int any = n == 0 ? 0 : prom_range_eval(fn, s->ts, s->v, n, outer, vec_out_next(&out));
	if (any < 0) {
		return prom_memory_error(outer->budget, err);
	}
	vec_out_put(&out, row, (uint32_t)outer->n, any > 0);
	vec_out_close(&out);
	return true;
}

static bool run_rows(int fn, duckdb_data_chunk in, duckdb_vector result, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	vec_lists lists;
	if (!vec_lists_open(&lists, in, 1, err)) {
		return false;
	}
	vec_specs inner, outer;
	vec_specs_open(&inner, in, 2, PROM_KEYS_GRID, 0, own);
	vec_specs_open(&outer, in, 3, prom_range_keys(fn), 0, own);
	samples s = {0};
	bool ok = true;
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		const prom_spec *from = vec_specs_at(&inner, i, err), *to = from == NULL ? NULL : vec_specs_at(&outer, i, err);
		ok = to != NULL && over(fn, vec_list_at(&lists, i), from, to, own != NULL, &s, result, i, err);
	}
	samples_free(&s);
	vec_specs_close(&inner);
	vec_specs_close(&outer);
	return ok;
}

static bool run(duckdb_data_chunk in, duckdb_vector result, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	vec_text name;
	if (!vec_constant_text(in, 0, "range function", &name, err)) {
		return false;
	}
	int fn = prom_range_find(name.text, name.len);
	return fn < 0 ? vec_unknown("range function", name, err) : run_rows(fn, in, result, own, err);
}

const vec_scalar vec_scalars_over[] = {
    {"prom_over", {VEC_VARCHAR, VEC_LIST, VEC_VARCHAR, VEC_VARCHAR}, VEC_LIST, run},
    {0},
};
