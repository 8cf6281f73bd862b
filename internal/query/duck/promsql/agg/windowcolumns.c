// Registration of the aggregates.
#include "windows.h"

#include <stdio.h>
#include <stdlib.h>

window_columns window_columns_of(const window_function *f) {
	uint32_t keys = f->form == WINDOW_GRID ? 0 : prom_range_keys(f->fn); // a grid has the parameters, too
	int before = (keys & PROM_KEY_PHI) != 0;
	int after = ((keys & PROM_KEY_DUR) != 0) + ((keys & PROM_KEY_SF) != 0) + ((keys & PROM_KEY_TF) != 0);
	window_columns c = {.ts = before, .value = before + 1, .start = before + 2, .end = before + 2 + (f->form == WINDOW_BOUNDS)};
	c.count = c.end + 1 + after;
	c.parameters[0] = before ? 0 : after > 0 ? c.end + 1 : -1;
	c.parameters[1] = after > 1 ? c.end + 2 : -1;
	return c;
}

static idx_t state_size(duckdb_function_info info) {
	(void)info;
	return sizeof(window_state);
}

static void state_init(duckdb_function_info info, duckdb_aggregate_state s) {
	(void)info;
	*(window_state *)s = (window_state){0};
}

static void destroy(duckdb_aggregate_state *states, idx_t n) {
	for (idx_t i = 0; i < n; i++) {
		window_clear((window_state *)states[i]);
	}
}

static void drop(void *extra) {
	prom_budget_release(((window_function *)extra)->budget);
	free(extra);
}

static void add_parameter(duckdb_aggregate_function f, duckdb_type type) {
	duckdb_logical_type t = duckdb_create_logical_type(type);
	duckdb_aggregate_function_add_parameter(f, t);
	duckdb_destroy_logical_type(&t);
}

// The aggregate of one form. NULL: out of memory, or the budget is closed.
static duckdb_aggregate_function aggregate(const char *name, int fn, window_form form, int64_t budget) {
	window_function *extra = malloc(sizeof *extra);
	if (extra == NULL) {
		return NULL;
	}
	*extra = (window_function){fn, form, prom_budget_acquire(budget)};
	if (extra->budget == NULL) {
		free(extra);
		return NULL;
	}
	duckdb_aggregate_function f = duckdb_create_aggregate_function();
	duckdb_aggregate_function_set_extra_info(f, extra, drop);
	duckdb_aggregate_function_set_name(f, name);
	window_columns c = window_columns_of(extra);
	for (int i = 0; i < c.count; i++) {
		static const duckdb_type ends[] = {[WINDOW_BOUNDS] = DUCKDB_TYPE_TIMESTAMP_TZ, [WINDOW_SLIDES] = DUCKDB_TYPE_INTERVAL, [WINDOW_GRID] = DUCKDB_TYPE_VARCHAR};
		bool time = i == c.ts || (form == WINDOW_BOUNDS && i == c.start);
		add_parameter(f, i == c.end ? ends[form] : time ? DUCKDB_TYPE_TIMESTAMP_TZ : DUCKDB_TYPE_DOUBLE);
	}
	duckdb_logical_type value = duckdb_create_logical_type(DUCKDB_TYPE_DOUBLE);
	duckdb_logical_type result = form == WINDOW_GRID ? duckdb_create_list_type(value) : duckdb_create_logical_type(DUCKDB_TYPE_DOUBLE);
	duckdb_destroy_logical_type(&value);
	duckdb_aggregate_function_set_return_type(f, result);
	duckdb_destroy_logical_type(&result);
	duckdb_aggregate_function_set_special_handling(f); // of NULL, by the aggregate
	duckdb_aggregate_function_set_functions(f, state_size, state_init, window_update, window_combine, window_finalize);
	duckdb_aggregate_function_set_destructor(f, destroy);
	return f;
}

int prom_register_windows(duckdb_connection conn, const char *function, size_t len, int64_t budget, char err[PROM_ERROR_BYTES]) {
	int fn = prom_range_find(function, len);
	if (fn < 0) {
		snprintf(err, PROM_ERROR_BYTES, "there is no range function %.*s", (int)len, function);
		return 1;
	}
	char name[64];
	snprintf(name, sizeof name, "prom_%.*s", (int)len, function);
	duckdb_aggregate_function_set set = duckdb_create_aggregate_function_set(name);
	duckdb_state state = DuckDBSuccess;
	for (int form = 0; form < WINDOW_FORMS && state == DuckDBSuccess; form++) {
		duckdb_aggregate_function f = aggregate(name, fn, (window_form)form, budget);
		state = f == NULL ? DuckDBError : duckdb_add_aggregate_function_to_set(set, f);
		if (f != NULL) {
			duckdb_destroy_aggregate_function(&f);
		}
	}
	if (state == DuckDBSuccess) {
		state = duckdb_register_aggregate_function_set(conn, set);
	}
	duckdb_destroy_aggregate_function_set(&set);
	if (state == DuckDBError) {
		snprintf(err, PROM_ERROR_BYTES, "DuckDB refused %s", name);
		return 1;
	}
	return 0;
}
