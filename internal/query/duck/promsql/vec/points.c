// prom_points: a list of values as the points of a grid, without the steps that have none.
#include "register.h"

#include <stdio.h>

// Writes the points of a row. Returns their number.
static idx_t write_points(vec_list l, const prom_spec *grid, int64_t *ts, double *value) {
	size_t stride = vec_stride(l);
	idx_t n = 0;
	for (int64_t k = 0; k < grid->n; k++) {
		double v = l.v[(size_t)k * stride];
		ts[n] = (grid->start + k * grid->step + grid->shift) * 1000;
		value[n] = v;
		n += !prom_is_absent(v);
	}
	return n;
}

static bool points(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	vec_lists lists;
	if (!vec_lists_open(&lists, in, 0, err)) {
		return false;
	}
	vec_specs grids;
	vec_specs_open(&grids, in, 1, PROM_KEYS_GRID, PROM_KEY_RANGE, own);
	bool ok = true;
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in), at = 0; ok && i < rows; i++) {
		vec_list l = vec_list_at(&lists, i);
		const prom_spec *grid = vec_specs_at(&grids, i, err);
		ok = grid != NULL;
		if (ok && l.n > 1 && l.n != grid->n) {
			snprintf(err, PROM_ERROR_BYTES, "read values: a list of %u values on a grid of %lld steps", l.n, (long long)grid->n);
			ok = false;
		}
		// One more element: an absent value is written, too, and then overwritten.
		if (ok && duckdb_list_vector_reserve(out, at + (l.n == 0 ? 0 : (idx_t)grid->n + 1)) == DuckDBError) {
			snprintf(err, PROM_ERROR_BYTES, "write values: the machine has no memory for them");
			ok = false;
		}
		if (!ok) {
			break;
		}
		duckdb_vector all = duckdb_list_vector_get_child(out);
		int64_t *ts = duckdb_vector_get_data(duckdb_struct_vector_get_child(all, 0));
		double *value = duckdb_vector_get_data(duckdb_struct_vector_get_child(all, 1));
		idx_t n = l.n == 0 ? 0 : write_points(l, grid, ts + at, value + at);
		((duckdb_list_entry *)duckdb_vector_get_data(out))[i] = (duckdb_list_entry){at, n};
		at += n;
		duckdb_list_vector_set_size(out, at);
	}
	vec_specs_close(&grids);
	return ok;
}

const vec_scalar vec_scalars_points[] = {
    {"prom_points", {VEC_LIST, VEC_VARCHAR}, VEC_POINTS, points},
    {0},
};
