// Columns as DuckDB's types, and copies of rows into its vectors.
#include "fill.h"

#include <stdlib.h>
#include <string.h>

duckdb_logical_type prom_table_type(int type) {
	switch (type) {
	case PROM_DOUBLE:
		return duckdb_create_logical_type(DUCKDB_TYPE_DOUBLE);
	case PROM_BIGINT:
		return duckdb_create_logical_type(DUCKDB_TYPE_BIGINT);
	case PROM_BOOLEAN:
		return duckdb_create_logical_type(DUCKDB_TYPE_BOOLEAN);
	case PROM_TIMESTAMP:
		return duckdb_create_logical_type(DUCKDB_TYPE_TIMESTAMP_TZ);
	case PROM_UINTEGER:
		return duckdb_create_logical_type(DUCKDB_TYPE_UINTEGER);
	case PROM_DOUBLES: {
		duckdb_logical_type value = duckdb_create_logical_type(DUCKDB_TYPE_DOUBLE), list = duckdb_create_list_type(value);
		duckdb_destroy_logical_type(&value);
		return list;
	}
	case PROM_MAP: {
		duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR), map = duckdb_create_map_type(text, text);
		duckdb_destroy_logical_type(&text);
		return map;
	}
	default:
		return duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR);
	}
}

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

// Lays out n lists, of which each ends where the next one begins, and makes room for their
// elements.
static bool lay_out(duckdb_vector out, const uint32_t *ends, size_t n) {
	size_t all = n == 0 ? 0 : ends[n - 1];
	if (duckdb_list_vector_reserve(out, all) != DuckDBSuccess || duckdb_list_vector_set_size(out, all) != DuckDBSuccess) {
		return false;
	}
	duckdb_list_entry *entries = duckdb_vector_get_data(out);
	for (size_t i = 0, from = 0; i < n; i++) {
		entries[i] = (duckdb_list_entry){from, ends[i] - from};
		from = ends[i];
	}
	return true;
}

// Go writes the elements afterwards.
static bool lay_out_doubles(duckdb_vector out, const prom_table_vector *in, size_t rows) {
	if (!lay_out(out, in->ends, rows)) {
		return false;
	}
	const duckdb_list_entry *entries = duckdb_vector_get_data(out);
	for (size_t i = 0; i < rows; i++) {
		if (entries[i].length == 0) {
			duckdb_vector_ensure_validity_writable(out);
			duckdb_validity_set_row_invalid(duckdb_vector_get_validity(out), i);
		}
	}
	return true;
}

static bool fill_maps(duckdb_vector out, const prom_table_vector *in) {
	size_t pairs = in->entries == 0 ? 0 : in->map_ends[in->entries - 1];
	if (!lay_out(out, in->map_ends, in->entries)) {
		return false;
	}
	duckdb_vector pair = duckdb_list_vector_get_child(out);
	duckdb_vector keys = duckdb_struct_vector_get_child(pair, 0), values = duckdb_struct_vector_get_child(pair, 1);
	for (size_t i = 0; i < pairs; i++) {
		put_string(keys, i, in, 2 * i);
		put_string(values, i, in, 2 * i + 1);
	}
	return true;
}

// Gives the rows their entries: a series' labels are in a chunk once.
static bool repeat(duckdb_vector out, const prom_table_vector *in, size_t rows) {
	duckdb_selection_vector selection = duckdb_create_selection_vector(rows);
	if (selection == NULL) {
		return false;
	}
	sel_t *entry = duckdb_selection_vector_get_data_ptr(selection);
	for (size_t i = 0, row = 0; i < in->entries; i++) {
		for (uint32_t n = in->repeats[i]; n > 0 && row < rows; n--) {
			entry[row++] = i;
		}
	}
	duckdb_slice_vector(out, selection, rows);
	duckdb_destroy_selection_vector(selection);
	return true;
}

static duckdb_value string_value(const prom_table_vector *in, size_t i) {
	uint32_t from = i == 0 ? 0 : in->ends[i - 1];
	return duckdb_create_varchar_length(in->bytes + from, in->ends[i] - from);
}

// The value of the only entry, a map. NULL if DuckDB refuses it.
static duckdb_value map_value(const prom_table_vector *in) {
	size_t pairs = in->map_ends[0], strings = 2 * pairs;
	duckdb_value *all = calloc(strings + 1, sizeof *all), out = NULL; // the keys, then the values
	if (all == NULL) {
		return NULL;
	}
	bool ok = true;
	for (size_t i = 0; i < strings; i++) {
		duckdb_value v = string_value(in, i);
		all[i / 2 + (i % 2) * pairs] = v;
		ok = ok && v != NULL;
	}
	if (ok) {
		duckdb_logical_type type = prom_table_type(PROM_MAP);
		out = duckdb_create_map_value(type, all, all + pairs, pairs);
		duckdb_destroy_logical_type(&type);
	}
	for (size_t i = 0; i < strings; i++) {
		duckdb_destroy_value(&all[i]);
	}
	free(all);
	return out;
}

// Makes the vector constant: DuckDB then evaluates conditions and groups once for all rows. Returns
// false if the rows do not have one entry, or if that is NULL or refused.
static bool constant(duckdb_vector out, const prom_table_vector *in) {
	if (in->entries != 1 || in->repeats == NULL || in->valid != NULL) {
		return false;
	}
	duckdb_value v = in->type == PROM_MAP ? map_value(in) : string_value(in, 0);
	if (v == NULL) {
		return false;
	}
	duckdb_vector_reference_value(out, v);
	duckdb_destroy_value(&v);
	return true;
}

bool prom_table_fill(duckdb_vector out, const prom_table_vector *in, size_t rows) {
	static const size_t sizes[PROM_TYPES] = {
		[PROM_DOUBLE] = sizeof(double), [PROM_BIGINT] = sizeof(int64_t), [PROM_TIMESTAMP] = sizeof(int64_t), [PROM_BOOLEAN] = sizeof(bool), [PROM_UINTEGER] = sizeof(uint32_t)};
	if (in->type == PROM_DOUBLES) {
		return lay_out_doubles(out, in, rows);
	}
	if (in->type != PROM_VARCHAR && in->type != PROM_MAP) {
		if (in->data != NULL) { // NULL: a column that nobody reads
			memcpy(duckdb_vector_get_data(out), in->data, rows * sizes[in->type]);
			set_nulls(out, in->valid, rows);
		}
		return true;
	}
	if (constant(out, in)) {
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
	return in->repeats == NULL || repeat(out, in, rows);
}
