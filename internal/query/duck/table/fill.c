// Copies of rows into DuckDB's vectors.
#include "fill.h"

#include <string.h>

static void set_nulls(duckdb_vector out, const uint8_t *valid, size_t n) {
	if (valid == NULL) {
		return;
	}
	duckdb_vector_ensure_validity_writable(out);
	uint64_t *mask = duckdb_vector_get_validity(out);
	for (size_t i = 0; i < n; i++) {
		if (!valid[i]) {
			duckdb_validity_set_row_invalid(mask, i);
		}
	}
}

// The i-th of the strings.
static void put_string(duckdb_vector out, size_t at, const prom_table_vector *in, size_t i) {
	uint32_t from = i == 0 ? 0 : in->ends[i - 1];
	duckdb_vector_assign_string_element_len(out, at, in->bytes + from, in->ends[i] - from);
}

static bool fill_maps(duckdb_vector out, const prom_table_vector *in) {
	size_t pairs = in->entries == 0 ? 0 : in->map_ends[in->entries - 1];
	if (duckdb_list_vector_reserve(out, pairs) != DuckDBSuccess || duckdb_list_vector_set_size(out, pairs) != DuckDBSuccess) {
		return false;
	}
	duckdb_list_entry *entries = duckdb_vector_get_data(out);
	for (size_t i = 0, from = 0; i < in->entries; i++) {
		entries[i] = (duckdb_list_entry){from, in->map_ends[i] - from};
		from = in->map_ends[i];
	}
	duckdb_vector pair = duckdb_list_vector_get_child(out);
	duckdb_vector keys = duckdb_struct_vector_get_child(pair, 0), values = duckdb_struct_vector_get_child(pair, 1);
	for (size_t i = 0; i < pairs; i++) {
		put_string(keys, i, in, 2 * i);
		put_string(values, i, in, 2 * i + 1);
	}
	return true;
}

// Makes row i the entry chosen[i]: a series' labels are in a chunk once.
static bool choose(duckdb_vector out, const uint32_t *chosen, size_t rows) {
	duckdb_selection_vector selection = duckdb_create_selection_vector(rows);
	if (selection == NULL) {
		return false;
	}
	memcpy(duckdb_selection_vector_get_data_ptr(selection), chosen, rows * sizeof *chosen);
	duckdb_slice_vector(out, selection, rows);
	duckdb_destroy_selection_vector(selection);
	return true;
}

bool prom_table_fill(duckdb_vector out, const prom_table_vector *in, size_t rows) {
	static const size_t sizes[PROM_TYPES] = {
		[PROM_DOUBLE] = sizeof(double), [PROM_BIGINT] = sizeof(int64_t), [PROM_TIMESTAMP] = sizeof(int64_t), [PROM_BOOLEAN] = sizeof(bool)};
	if (in->type != PROM_VARCHAR && in->type != PROM_MAP) {
		if (in->data != NULL) { // NULL: a column that nobody reads
			memcpy(duckdb_vector_get_data(out), in->data, rows * sizes[in->type]);
			set_nulls(out, in->valid, rows);
		}
		return true;
	}
	if (in->type == PROM_MAP) {
		if (!fill_maps(out, in)) {
			return false;
		}
	} else {
		for (size_t i = 0; i < in->entries; i++) {
			put_string(out, i, in, i);
		}
	}
	set_nulls(out, in->valid, in->entries);
	return in->chosen == NULL || choose(out, in->chosen, rows);
}
