// Lists that come from the grid: prom_time and prom_timestamps.
#include "register.h"

#include <stdio.h>

typedef enum { TIME, TIMESTAMPS } kind;

// Step k's evaluation time in seconds, which upstream calculates from ms like this.
static double seconds(const prom_spec *s, uint32_t k) { return (double)(s->start + (int64_t)k * s->step + s->shift) / 1000; }

// Writes the list of a row. Returns whether any step has a value.
static bool fill(kind what, const prom_spec *s, vec_list v, double *restrict out) {
	uint64_t any = 0;
	size_t stride = vec_stride(v);
	for (uint32_t k = 0; k < s->n; k++) {
		uint64_t gone = what == TIME ? 0 : vec_gone(v.v[k * stride]);
		out[k] = vec_choose(gone, prom_absent_value(), seconds(s, k));
		any |= ~gone;
	}
	return any != 0;
}

static bool write_rows(kind what, duckdb_data_chunk in, vec_specs *specs, duckdb_vector result, char err[PROM_ERROR_BYTES]) {
	vec_lists lists;
	if (what != TIME && !vec_lists_open(&lists, in, 0, err)) {
		return false;
	}
	idx_t rows = duckdb_data_chunk_get_size(in);
	for (idx_t i = 0; i < rows; i++) {
		const prom_spec *s = vec_specs_at(specs, i, err);
		if (s == NULL) {
			return false;
		}
		vec_list v = what == TIME ? (vec_list){NULL, 1} : vec_list_at(&lists, i);
		if (v.n > 1 && v.n != s->n) {
			snprintf(err, PROM_ERROR_BYTES, "write values: a list of %u values on a grid of %lld steps", v.n, (long long)s->n);
			return false;
		}
		vec_out out;
		if (!vec_out_open(&out, result, v.n == 0 ? 0 : (idx_t)s->n, err)) {
			return false;
		}
		vec_out_put(&out, i, (uint32_t)s->n, v.n > 0 && fill(what, s, v, vec_out_next(&out)));
		vec_out_close(&out);
	}
	return true;
}

static bool run(kind what, duckdb_data_chunk in, duckdb_vector result, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	vec_specs specs;
	vec_specs_open(&specs, in, what == TIME ? 0 : 1, PROM_KEYS_GRID, 0, own);
	bool ok = write_rows(what, in, &specs, result, err);
	vec_specs_close(&specs);
	return ok;
}

static bool time_list(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]) { return run(TIME, in, out, own, err); }
static bool timestamps(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]) { return run(TIMESTAMPS, in, out, own, err); }

const vec_scalar vec_scalars_time[] = {
    {"prom_time", {VEC_VARCHAR}, VEC_LIST, time_list},
    {"prom_timestamps", {VEC_LIST, VEC_VARCHAR}, VEC_LIST, timestamps},
    {0},
};
