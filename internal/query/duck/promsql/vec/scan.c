// prom_rows(id): the rows that Go published, as DuckDB scans them. Threads take one chunk after
// another.
#include "rows.h"
#include "table.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMN_I, COLUMN_V, COLUMNS };

// One run of a statement.
typedef struct {
	prom_rows *rows;        // a reference
	_Atomic size_t next;    // chunk
	idx_t columns[COLUMNS]; // where each goes in the output
} scan;

#define NOWHERE ((idx_t)-1)

static void release(void *rows) { prom_rows_release(rows); }

static void missing(int64_t id, char err[PROM_ERROR_BYTES]) { snprintf(err, PROM_ERROR_BYTES, "rows %" PRId64 " are not there", id); }

static void add_columns(duckdb_bind_info info) {
	duckdb_logical_type i = duckdb_create_logical_type(DUCKDB_TYPE_UINTEGER), value = duckdb_create_logical_type(DUCKDB_TYPE_DOUBLE);
	duckdb_logical_type v = duckdb_create_list_type(value);
	duckdb_bind_add_result_column(info, "i", i);
	duckdb_bind_add_result_column(info, "v", v);
	duckdb_destroy_logical_type(&i);
	duckdb_destroy_logical_type(&v);
	duckdb_destroy_logical_type(&value);
}

static void bind(duckdb_bind_info info) {
	duckdb_value parameter = duckdb_bind_get_parameter(info, 0);
	int64_t id = duckdb_is_null_value(parameter) ? 0 : duckdb_get_int64(parameter);
	duckdb_destroy_value(&parameter);
	prom_rows *rows = prom_rows_acquire(id);
	if (rows == NULL) {
		char err[PROM_ERROR_BYTES];
		missing(id, err);
		duckdb_bind_set_error(info, err);
		return;
	}
	add_columns(info);
	duckdb_bind_set_cardinality(info, rows->count, true);
	duckdb_bind_set_bind_data(info, rows, release);
}

static void end(void *p) {
	scan *s = p;
	prom_rows_release(s->rows);
	free(s);
}

static void begin(duckdb_init_info info) {
	scan *s = calloc(1, sizeof *s);
	if (s == NULL) {
		duckdb_init_set_error(info, "out of memory");
		return;
	}
	s->rows = prom_rows_hold(duckdb_init_get_bind_data(info));
	s->columns[COLUMN_I] = s->columns[COLUMN_V] = NOWHERE;
	for (idx_t out = 0, n = duckdb_init_get_column_count(info); out < n; out++) {
		idx_t column = duckdb_init_get_column_index(info, out);
		if (column < COLUMNS) {
			s->columns[column] = out;
		}
	}
	duckdb_init_set_max_threads(info, s->rows->chunks > 0 ? s->rows->chunks : 1);
	duckdb_init_set_init_data(info, s, end);
}

// Writes the list entries of a chunk and reserves room for the elements. Returns false if there is
// none.
static bool lay_out(duckdb_vector out, const prom_list *lists, size_t rows) {
	duckdb_list_entry *entries = duckdb_vector_get_data(out);
	size_t total = 0;
	for (size_t i = 0; i < rows; i++) {
		entries[i] = (duckdb_list_entry){total, lists[i].n};
		total += lists[i].n;
		if (lists[i].n == 0) {
			duckdb_vector_ensure_validity_writable(out);
			duckdb_validity_set_row_invalid(duckdb_vector_get_validity(out), i);
		}
	}
	return duckdb_list_vector_reserve(out, total) == DuckDBSuccess && duckdb_list_vector_set_size(out, total) == DuckDBSuccess;
}

static void copy_lists(duckdb_vector out, const prom_list *lists, size_t rows) {
	double *to = duckdb_vector_get_data(duckdb_list_vector_get_child(out));
	for (size_t i = 0; i < rows; i++) {
		if (lists[i].n > 0) {
			memcpy(to, lists[i].v, lists[i].n * sizeof *to);
			to += lists[i].n;
		}
	}
}

// Fills out with a chunk. DuckDB calls that may throw come before prom_rows_enter, because an
// exception would skip prom_rows_leave. Returns false with a message.
static bool fill(const scan *s, size_t chunk, duckdb_data_chunk out, char err[PROM_ERROR_BYTES]) {
	prom_rows *r = s->rows;
	size_t from = r->first[chunk], rows = r->first[chunk + 1] - from;
	duckdb_vector i = s->columns[COLUMN_I] == NOWHERE ? NULL : duckdb_data_chunk_get_vector(out, s->columns[COLUMN_I]);
	duckdb_vector v = s->columns[COLUMN_V] == NOWHERE ? NULL : duckdb_data_chunk_get_vector(out, s->columns[COLUMN_V]);
	if (v != NULL && !lay_out(v, r->lists + from, rows)) {
		snprintf(err, PROM_ERROR_BYTES, "out of memory");
		return false;
	}
	if (!prom_rows_enter(r)) {
		missing(r->id, err);
		return false;
	}
	if (i != NULL) {
		memcpy(duckdb_vector_get_data(i), r->ordinal + from, rows * sizeof *r->ordinal);
	}
	if (v != NULL) {
		copy_lists(v, r->lists + from, rows);
	}
	prom_rows_leave(r);
	duckdb_data_chunk_set_size(out, rows);
	return true;
}

static void next(duckdb_function_info info, duckdb_data_chunk out) {
	scan *s = duckdb_function_get_init_data(info);
	size_t chunk = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed);
	char err[PROM_ERROR_BYTES];
	if (chunk >= s->rows->chunks) {
		duckdb_data_chunk_set_size(out, 0);
	} else if (!fill(s, chunk, out, err)) {
		duckdb_function_set_error(info, err);
	}
}

int prom_register_rows(duckdb_connection conn, char err[PROM_ERROR_BYTES]) {
	duckdb_table_function f = duckdb_create_table_function();
	duckdb_table_function_set_name(f, "prom_rows");
	duckdb_logical_type id = duckdb_create_logical_type(DUCKDB_TYPE_BIGINT);
	duckdb_table_function_add_parameter(f, id);
	duckdb_destroy_logical_type(&id);
	duckdb_table_function_set_bind(f, bind);
	duckdb_table_function_set_init(f, begin);
	duckdb_table_function_set_function(f, next);
	duckdb_table_function_supports_projection_pushdown(f, true);
	duckdb_state state = duckdb_register_table_function(conn, f);
	duckdb_destroy_table_function(&f);
	if (state == DuckDBError) {
		snprintf(err, PROM_ERROR_BYTES, "DuckDB refused prom_rows");
		return 1;
	}
	return 0;
}
