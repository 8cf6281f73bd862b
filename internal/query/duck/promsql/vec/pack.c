// prom_pack and prom_unpack: a list as a BLOB of its doubles. DuckDB converts a list from a scalar
// subquery to a sort key, which has one NaN and one zero; a BLOB keeps its bytes.
#include "register.h"

#include <stdio.h>

static bool pack(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	(void)own;
	vec_lists lists;
	if (!vec_lists_open(&lists, in, 0, err)) {
		return false;
	}
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); i < rows; i++) {
		vec_list l = vec_list_at(&lists, i);
		if (l.n > 0) {
			duckdb_vector_assign_string_element_len(out, i, (const char *)l.v, l.n * sizeof(double));
		} else {
			vec_set_null(out, i);
		}
	}
	return true;
}

// Rows with the same bytes in the same place, as those of a constant are, share the elements of one
// list.
static bool unpack(duckdb_data_chunk in, duckdb_vector result, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	(void)own;
	vec_column blobs = vec_column_of(in, 0);
	vec_text last = {NULL, 0};
	vec_out out;
	duckdb_list_entry shared = {0};
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); i < rows; i++) {
		vec_text t = vec_valid(blobs.validity, i) ? vec_text_at(blobs.data, i) : (vec_text){NULL, 0};
		if (t.len % sizeof(double) != 0 || t.len / sizeof(double) > PROM_MAX_STEPS) {
			snprintf(err, PROM_ERROR_BYTES, "unpack values: %zu bytes are no list of 1 to %d doubles", t.len, PROM_MAX_STEPS);
			return false;
		}
		bool again = t.len > 0 && t.len == last.len && t.text == last.text;
		if (!vec_out_open(&out, result, again ? 0 : t.len / sizeof(double), err)) {
			return false;
		}
		if (again) {
			out.at[i] = shared;
		} else if (t.len == 0) {
			vec_out_null(&out, i);
		} else {
			memcpy(vec_out_next(&out), t.text, t.len);
			vec_out_keep(&out, i, (uint32_t)(t.len / sizeof(double)));
			shared = out.at[i];
		}
		vec_out_close(&out);
		last = t;
	}
	return true;
}

const vec_scalar vec_scalars_pack[] = {
    {"prom_pack", {VEC_LIST}, VEC_BLOB, pack},
    {"prom_unpack", {VEC_BLOB}, VEC_LIST, unpack},
    {0},
};
