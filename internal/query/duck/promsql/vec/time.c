// prom_time: the evaluation times of a grid.
#include "register.h"

static bool time_list(duckdb_data_chunk in, duckdb_vector result, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	vec_specs specs;
	vec_specs_open(&specs, in, 0, PROM_KEYS_GRID, 0, own);
	bool ok = true;
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		const prom_spec *s = vec_specs_at(&specs, i, err);
		vec_out out;
		ok = s != NULL && vec_out_open(&out, result, (idx_t)s->n, err);
		if (ok) {
			double *seconds = vec_out_next(&out);
			for (int64_t k = 0; k < s->n; k++) {
				seconds[k] = (double)(s->start + k * s->step + s->shift) / 1000; // upstream calculates it from ms like this
			}
			vec_out_keep(&out, i, (uint32_t)s->n);
			vec_out_close(&out);
		}
	}
	vec_specs_close(&specs);
	return ok;
}

const vec_scalar vec_scalars_time[] = {
    {"prom_time", {VEC_VARCHAR}, VEC_LIST, time_list},
    {0},
};
