// The life of a table function: bind, begin, one cursor for each thread.
#include "fill.h"

#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

enum { MAX_ARGUMENTS = 8 };

static void *pointer(uintptr_t handle) { return (void *)handle; }
static void release(void *handle) { promTableRelease((uintptr_t)handle); }

typedef struct {
	uintptr_t handle;
	int parameters;
} function;

static void release_function(void *p) {
	promTableRelease(((function *)p)->handle);
	free(p);
}

static void bind(duckdb_bind_info info) {
	function *f = duckdb_bind_get_extra_info(info);
	char *arguments[MAX_ARGUMENTS] = {NULL};
	for (int i = 0; i < f->parameters; i++) {
		duckdb_value v = duckdb_bind_get_parameter(info, i);
		arguments[i] = v == NULL || duckdb_is_null_value(v) ? NULL : duckdb_get_varchar(v);
		duckdb_destroy_value(&v);
	}
	prom_table_bound out = {0};
	promTableBind(f->handle, f->parameters, arguments, &out);
	for (int i = 0; i < f->parameters; i++) {
		duckdb_free(arguments[i]);
	}
	for (size_t i = 0; i < out.count; i++) {
		duckdb_logical_type type = prom_table_type(out.columns[i].type);
		duckdb_bind_add_result_column(info, out.columns[i].name, type);
		duckdb_destroy_logical_type(&type);
		free(out.columns[i].name);
	}
	free(out.columns);
	if (out.error != NULL) {
		duckdb_bind_set_error(info, out.error);
		free(out.error);
		return;
	}
	duckdb_bind_set_cardinality(info, out.rows, false);
	duckdb_bind_set_bind_data(info, pointer(out.table), release);
}

static void begin(duckdb_init_info info) {
	size_t n = duckdb_init_get_column_count(info);
	uint64_t *columns = calloc(n + 1, sizeof *columns);
	if (columns == NULL) {
		duckdb_init_set_error(info, "out of memory");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		columns[i] = duckdb_init_get_column_index(info, i);
	}
	prom_table_opened out = {0};
	promTableOpen((uintptr_t)duckdb_init_get_bind_data(info), columns, n, &out);
	free(columns);
	if (out.error != NULL) {
		duckdb_init_set_error(info, out.error);
		free(out.error);
		return;
	}
	duckdb_init_set_max_threads(info, out.threads);
	duckdb_init_set_init_data(info, pointer(out.scan), release);
}

// The cursor is opened at the first chunk: DuckDB does not let a thread's state find the scan.
typedef struct {
	uintptr_t handle;
	size_t columns;
	prom_table_vector vectors[];
} cursor;

static void release_cursor(void *p) {
	cursor *c = p;
	if (c->handle != 0) {
		promTableRelease(c->handle);
	}
	free(c);
}

static void begin_thread(duckdb_init_info info) {
	size_t n = duckdb_init_get_column_count(info);
	cursor *c = calloc(1, sizeof *c + n * sizeof *c->vectors);
	if (c == NULL) {
		duckdb_init_set_error(info, "out of memory");
		return;
	}
	c->columns = n;
	duckdb_init_set_init_data(info, c, release_cursor);
}

static void next(duckdb_function_info info, duckdb_data_chunk chunk) {
	cursor *c = duckdb_function_get_local_init_data(info);
	if (c->handle == 0) {
		c->handle = promTableCursor((uintptr_t)duckdb_function_get_init_data(info));
	}
	memset(c->vectors, 0, c->columns * sizeof *c->vectors);
	prom_table_chunk out = {.vectors = c->vectors};
	promTableNext(c->handle, &out);
	if (out.error != NULL) {
		duckdb_function_set_error(info, out.error);
		free(out.error);
		return;
	}
	for (size_t i = 0; i < c->columns; i++) {
		duckdb_vector v = duckdb_data_chunk_get_vector(chunk, i);
		if (out.rows > 0 && !prom_table_fill(v, &out.vectors[i], out.rows)) {
			duckdb_function_set_error(info, "out of memory");
			return;
		}
		if (out.rows > 0 && out.vectors[i].type == PROM_DOUBLES) {
			promTableCopy(c->handle, i, duckdb_vector_get_data(duckdb_list_vector_get_child(v)), &out);
		}
		if (out.error != NULL) {
			duckdb_function_set_error(info, out.error);
			free(out.error);
			return;
		}
	}
	duckdb_data_chunk_set_size(chunk, out.rows);
}

int prom_table_register(duckdb_connection conn, const char *name, int n, uintptr_t handle) {
	function *extra = calloc(1, sizeof *extra);
	if (extra == NULL || n > MAX_ARGUMENTS) {
		free(extra);
		return 1;
	}
	*extra = (function){handle, n};
	duckdb_table_function f = duckdb_create_table_function();
	duckdb_table_function_set_name(f, name);
	duckdb_logical_type any = duckdb_create_logical_type(DUCKDB_TYPE_ANY);
	for (int i = 0; i < n; i++) {
		duckdb_table_function_add_parameter(f, any);
	}
	duckdb_destroy_logical_type(&any);
	duckdb_table_function_set_extra_info(f, extra, release_function);
	duckdb_table_function_set_bind(f, bind);
	duckdb_table_function_set_init(f, begin);
	duckdb_table_function_set_local_init(f, begin_thread);
	duckdb_table_function_set_function(f, next);
	duckdb_table_function_supports_projection_pushdown(f, true);
	duckdb_state state = duckdb_register_table_function(conn, f);
	duckdb_destroy_table_function(&f);
	return state == DuckDBError;
}

static void replace(duckdb_replacement_scan_info info, const char *name, void *handle) {
	prom_table_replaced out = {0};
	promTableReplace((uintptr_t)handle, (char *)name, &out);
	if (out.function == NULL) {
		return;
	}
	duckdb_replacement_scan_set_function_name(info, out.function);
	duckdb_value argument = duckdb_create_varchar(out.argument);
	duckdb_replacement_scan_add_parameter(info, argument);
	duckdb_destroy_value(&argument);
	free(out.function);
	free(out.argument);
}

void prom_table_replace(duckdb_database db, uintptr_t handle) { duckdb_add_replacement_scan(db, replace, pointer(handle), release); }
