// From numbers of series to ordinals of the plan.
#include "register.h"

#include <stdio.h>

#define NO_ORDINAL UINT32_MAX

// Element n of an array of uint32, NO_ORDINAL if it is shorter.
static uint32_t element(vec_text array, uint32_t n) {
	if (n >= array.len / 4) {
		return NO_ORDINAL;
	}
	const unsigned char *b = (const unsigned char *)array.text + (size_t)n * 4;
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

// Writes the element of each row's array at the row's ordinal. The length of an array must be a
// multiple of the size of its elements.
static bool at(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	(void)own;
	vec_column ordinals = vec_column_of(in, 0), arrays = vec_column_of(in, 1);
	uint32_t *values = duckdb_vector_get_data(out);
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); i < rows; i++) {
		values[i] = NO_ORDINAL;
		if (vec_valid(ordinals.validity, i) && vec_valid(arrays.validity, i)) {
			vec_text array = vec_text_at(arrays.data, i);
			if (array.len % 4 != 0) {
				snprintf(err, PROM_ERROR_BYTES, "read map of ordinals: its last entry is cut off");
				return false;
			}
			values[i] = element(array, ((const uint32_t *)ordinals.data)[i]);
		}
		if (values[i] == NO_ORDINAL) {
			vec_set_null(out, i);
		}
	}
	return true;
}

const vec_scalar vec_scalars_pick[] = {
    {"prom_at", {VEC_UINTEGER, VEC_BLOB}, VEC_UINTEGER, at},
    {0},
};
