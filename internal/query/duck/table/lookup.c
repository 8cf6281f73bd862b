// labels['x'] for maps of VARCHAR to VARCHAR: DuckDB's own function searches the map of each row,
// this one that of each run of rows with one map.
#include "fill.h"

#include <string.h>

static bool valid(uint64_t *mask, idx_t row) { return mask == NULL || duckdb_validity_row_is_valid(mask, row); }

// Strings are equal if their lengths are, and their bytes.
static bool equal(const duckdb_string_t *a, const duckdb_string_t *b) {
	duckdb_string_t x = *a, y = *b;
	uint32_t n = duckdb_string_t_length(x);
	return n == duckdb_string_t_length(y) && memcmp(duckdb_string_t_data(&x), duckdb_string_t_data(&y), n) == 0;
}

static void put_null(duckdb_vector out, idx_t row) {
	duckdb_vector_ensure_validity_writable(out);
	duckdb_validity_set_row_invalid(duckdb_vector_get_validity(out), row);
}

// Writes what a map has for a name as a row of out. Returns false if that is NULL.
static bool find(duckdb_vector out, idx_t row, duckdb_vector maps, idx_t map, const duckdb_string_t *name) {
	duckdb_vector pair = duckdb_list_vector_get_child(maps);
	duckdb_vector keys = duckdb_struct_vector_get_child(pair, 0), values = duckdb_struct_vector_get_child(pair, 1);
	const duckdb_string_t *key = duckdb_vector_get_data(keys);
	duckdb_string_t *value = duckdb_vector_get_data(values);
	duckdb_list_entry e = ((duckdb_list_entry *)duckdb_vector_get_data(maps))[map];
	for (idx_t i = e.offset; i < e.offset + e.length; i++) {
		if (equal(&key[i], name)) {
			if (valid(duckdb_vector_get_validity(values), i)) {
				duckdb_unsafe_vector_assign_string_element_len(out, row, duckdb_string_t_data(&value[i]), duckdb_string_t_length(value[i]));
				return true;
			}
			break;
		}
	}
	put_null(out, row);
	return false;
}

// Sets starts to the first row of each run of rows with one map, and returns the number of runs.
static idx_t find_runs(sel_t *starts, duckdb_vector maps, idx_t rows) {
	const duckdb_list_entry *e = duckdb_vector_get_data(maps);
	uint64_t *mask = duckdb_vector_get_validity(maps);
	idx_t runs = 0;
	for (idx_t i = 0; i < rows; i++) {
		bool same = i > 0 && e[i].offset == e[i - 1].offset && e[i].length == e[i - 1].length && (mask == NULL || (valid(mask, i) && valid(mask, i - 1)));
		if (!same) {
			starts[runs++] = i;
		}
	}
	return runs;
}

// Writes the values of all rows. first has the map of each run.
static void find_all(duckdb_vector out, duckdb_vector first, const sel_t *starts, idx_t runs, duckdb_vector names, idx_t rows) {
	duckdb_string_t *result = duckdb_vector_get_data(out);
	const duckdb_string_t *name = duckdb_vector_get_data(names);
	uint64_t *map_mask = duckdb_vector_get_validity(first), *name_mask = duckdb_vector_get_validity(names);
	for (idx_t run = 0; run < runs; run++) {
		idx_t begin = starts[run], end = run + 1 < runs ? starts[run + 1] : rows;
		const duckdb_string_t *last = NULL; // the name that was searched for in the row before
		bool found = false;
		for (idx_t i = begin; i < end; i++) {
			if (!valid(map_mask, run) || !valid(name_mask, i)) {
				put_null(out, i);
				last = NULL;
				continue;
			}
			if (last == NULL || memcmp(last, &name[i], sizeof *last) != 0) {
				found = find(out, i, first, run, &name[i]);
			} else if (found) {
				result[i] = result[i - 1]; // the vector owns the bytes of both
			} else {
				put_null(out, i);
			}
			last = &name[i];
		}
	}
}

static void lookup(duckdb_function_info info, duckdb_data_chunk input, duckdb_vector out) {
	idx_t rows = duckdb_data_chunk_get_size(input);
	duckdb_vector maps = duckdb_data_chunk_get_vector(input, 0), first = NULL;
	duckdb_selection_vector selection = rows == 0 ? NULL : duckdb_create_selection_vector(rows);
	if (selection != NULL) {
		sel_t *starts = duckdb_selection_vector_get_data_ptr(selection);
		idx_t runs = find_runs(starts, maps, rows);
		duckdb_logical_type type = prom_table_type(PROM_MAP);
		// Vectors inside of the maps may have any form. A copy is flat.
		first = duckdb_create_vector(type, runs);
		duckdb_destroy_logical_type(&type);
		if (first != NULL) {
			duckdb_vector_copy_sel(maps, first, selection, runs, 0, 0);
			find_all(out, first, starts, runs, duckdb_data_chunk_get_vector(input, 1), rows);
		}
	}
	if (rows > 0 && first == NULL) {
		duckdb_scalar_function_set_error(info, "out of memory");
	}
	duckdb_destroy_vector(&first);
	duckdb_destroy_selection_vector(selection);
}

int prom_table_register_lookup(duckdb_connection conn) {
	duckdb_scalar_function f = duckdb_create_scalar_function();
	duckdb_logical_type text = duckdb_create_logical_type(DUCKDB_TYPE_VARCHAR), map = prom_table_type(PROM_MAP);
	duckdb_scalar_function_set_name(f, "map_extract_value");
	duckdb_scalar_function_add_parameter(f, map);
	duckdb_scalar_function_add_parameter(f, text);
	duckdb_scalar_function_set_return_type(f, text);
	duckdb_scalar_function_set_function(f, lookup);
	duckdb_state state = duckdb_register_scalar_function(conn, f);
	duckdb_destroy_scalar_function(&f);
	duckdb_destroy_logical_type(&map);
	duckdb_destroy_logical_type(&text);
	return state == DuckDBError;
}
