// prom_over: a range function over a subquery, whose values on the inner grid are the samples.
#include "register.h"

#include <stdio.h>

#include "../kernel/kernel.h"

// One row: a list of the outer grid's length or NULL. scratch has the samples.
static bool over(int fn, vec_list l, const prom_spec *inner, const prom_spec *outer, bool bounded, prom_scratch *scratch, duckdb_vector result,
                 idx_t row, char err[PROM_ERROR_BYTES]) {
	if (l.n > 1 && l.n != inner->n) {
		snprintf(err, PROM_ERROR_BYTES, "evaluate subquery: a list of %u values on a grid of %lld steps", l.n, (long long)inner->n);
		return false;
	}
	if (prom_cancelled(outer->budget)) {
		return prom_cancel_error(err);
	}
	scratch->budget = outer->budget;
	int64_t *ts = prom_scratch_take(scratch, (size_t)inner->n * (sizeof(int64_t) + sizeof(double)));
	if (ts == NULL) {
		return prom_memory_error(outer->budget, err);
	}
	double *v = (double *)(ts + inner->n);
	uint32_t n = 0; // steps that have a value
	for (uint32_t k = 0; l.n > 0 && k < inner->n; k++) {
		ts[n] = inner->start + (int64_t)k * inner->step;
		v[n] = l.v[k * vec_stride(l)];
		n += !prom_is_absent(v[n]);
	}
	int64_t width = outer->range / inner->step + 1;
	if (bounded && !prom_windows_fit(outer, width < n ? width : n, err)) {
		return false;
	}
	vec_out out;
	if (!vec_out_open(&out, result, n == 0 ? 0 : (idx_t)outer->n, err)) {
		return false;
	}
	prom_kernel kernel = prom_kernel_of(fn, outer);
	int present = n == 0 ? PROM_KERNEL_NONE : prom_kernel_eval(&kernel, ts, v, n, PROM_NO_STALE, vec_out_next(&out));
	prom_kernel_clear(&kernel);
	if (present == PROM_KERNEL_REFUSED) {
		return prom_memory_error(outer->budget, err);
	}
	if (present == PROM_KERNEL_CANCELLED) {
		return prom_cancel_error(err);
	}
	vec_out_put(&out, row, (uint32_t)outer->n, present == PROM_KERNEL_PRESENT);
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
	prom_scratch scratch = {0};
	bool ok = true;
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		const prom_spec *from = vec_specs_at(&inner, i, err), *to = from == NULL ? NULL : vec_specs_at(&outer, i, err);
		ok = to != NULL && over(fn, vec_list_at(&lists, i), from, to, own != NULL, &scratch, result, i, err);
	}
	prom_scratch_free(&scratch);
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
