// From numbers of series to ordinals of the plan.
#include "register.h"

#include <stdio.h>

#define ENTRY_BYTES 12 // key u64, value u32
#define NO_ORDINAL UINT32_MAX

static uint32_t read_u32(const char *p) {
	const unsigned char *b = (const unsigned char *)p;
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint64_t read_u64(const char *p) { return read_u32(p) | (uint64_t)read_u32(p + 4) << 32; }

// The value of key in a map, NO_ORDINAL if it is not there.
static uint32_t find(vec_text map, uint64_t key) {
	size_t lo = 0, hi = map.len / ENTRY_BYTES;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (read_u64(map.text + mid * ENTRY_BYTES) < key) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	const char *at = map.text + lo * ENTRY_BYTES;
	return lo < map.len / ENTRY_BYTES && read_u64(at) == key ? read_u32(at + 8) : NO_ORDINAL;
}

// Element n of an array, NO_ORDINAL if it is shorter.
static uint32_t element(vec_text array, uint32_t n) { return n < array.len / 4 ? read_u32(array.text + (size_t)n * 4) : NO_ORDINAL; }

static void put(duckdb_vector out, idx_t row, uint32_t value) {
	((uint32_t *)duckdb_vector_get_data(out))[row] = value;
	if (value == NO_ORDINAL) {
		vec_set_null(out, row);
	}
}

// Writes the value of each row's key in the row's map. The length of a map must be a multiple of
// the entry size.
VEC_INLINE bool pick_all(duckdb_data_chunk in, duckdb_vector out, bool keyed, char err[PROM_ERROR_BYTES]) {
	vec_column keys = vec_column_of(in, 0), maps = vec_column_of(in, 1);
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); i < rows; i++) {
		uint32_t value = NO_ORDINAL;
		if (vec_valid(keys.validity, i) && vec_valid(maps.validity, i)) {
			vec_text map = vec_text_at(maps.data, i);
			if (map.len % (keyed ? ENTRY_BYTES : 4) != 0) {
				snprintf(err, PROM_ERROR_BYTES, "read map of ordinals: its last entry is cut off");
				return false;
			}
			value = keyed ? find(map, ((const uint64_t *)keys.data)[i]) : element(map, ((const uint32_t *)keys.data)[i]);
		}
		put(out, i, value);
	}
	return true;
}

static bool pick(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	(void)own;
	return pick_all(in, out, true, err);
}
static bool at(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	(void)own;
	return pick_all(in, out, false, err);
}

const vec_scalar vec_scalars_pick[] = {
    {"prom_pick", {VEC_UBIGINT, VEC_BLOB}, VEC_UINTEGER, pick},
    {"prom_at", {VEC_UINTEGER, VEC_BLOB}, VEC_UINTEGER, at},
    {0},
};
