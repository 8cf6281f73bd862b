// The aggregates as DuckDB sees them.
#include "agg_functions.h"

#include <stdio.h>

#define BOTH(fn) [fn] = {{fn, false}, {fn, true}}

static const agg_function functions[PROM_RANGE_FUNCTIONS][2] = {
    BOTH(PROM_INSTANT),
    BOTH(PROM_TIMESTAMP),
    BOTH(PROM_RATE),
    BOTH(PROM_INCREASE),
    BOTH(PROM_DELTA),
    BOTH(PROM_IRATE),
    BOTH(PROM_IDELTA),
    BOTH(PROM_DERIV),
    BOTH(PROM_PREDICT_LINEAR),
    BOTH(PROM_CHANGES),
    BOTH(PROM_RESETS),
    BOTH(PROM_AVG_OVER_TIME),
    BOTH(PROM_MIN_OVER_TIME),
    BOTH(PROM_MAX_OVER_TIME),
    BOTH(PROM_SUM_OVER_TIME),
    BOTH(PROM_COUNT_OVER_TIME),
    BOTH(PROM_LAST_OVER_TIME),
    BOTH(PROM_FIRST_OVER_TIME),
    BOTH(PROM_PRESENT_OVER_TIME),
    BOTH(PROM_STDDEV_OVER_TIME),
    BOTH(PROM_STDVAR_OVER_TIME),
    BOTH(PROM_MAD_OVER_TIME),
    BOTH(PROM_QUANTILE_OVER_TIME),
    BOTH(PROM_TS_OF_MIN_OVER_TIME),
    BOTH(PROM_TS_OF_MAX_OVER_TIME),
    BOTH(PROM_TS_OF_FIRST_OVER_TIME),
    BOTH(PROM_TS_OF_LAST_OVER_TIME),
    BOTH(PROM_DOUBLE_EXPONENTIAL_SMOOTHING),
};

static idx_t state_size(duckdb_function_info info) {
	(void)info;
	return sizeof(agg_state);
}

static void init(duckdb_function_info info, duckdb_aggregate_state state) {
	(void)info;
	*(agg_state *)state = (agg_state){0};
}

static void destroy(duckdb_aggregate_state *states, idx_t n) {
	const prom_spec *spec = NULL; // that of the states so far, refs of them
	int64_t refs = 0;
	for (idx_t i = 0; i < n; i++) {
		agg_state *s = (agg_state *)states[i];
		agg_clear(s);
		if (s->spec != spec) {
			prom_spec_put(spec, refs);
			spec = s->spec;
			refs = 0;
		}
		refs++;
		s->spec = NULL;
	}
	prom_spec_put(spec, refs);
}

static void combine(duckdb_function_info info, duckdb_aggregate_state *src, duckdb_aggregate_state *dst, idx_t n) {
	(void)info;
	for (idx_t i = 0; i < n; i++) {
		agg_take((agg_state *)dst[i], (agg_state *)src[i]);
	}
}

static void add_parameter(duckdb_aggregate_function f, duckdb_type type) {
	duckdb_logical_type t = duckdb_create_logical_type(type);
	duckdb_aggregate_function_add_parameter(f, t);
	duckdb_destroy_logical_type(&t);
}

static void set_signature(duckdb_aggregate_function f, bool decoded) {
	add_parameter(f, DUCKDB_TYPE_UBIGINT); // rank
	add_parameter(f, DUCKDB_TYPE_TIMESTAMP_TZ);
	if (!decoded) {
		add_parameter(f, DUCKDB_TYPE_BIGINT);
	}
	add_parameter(f, DUCKDB_TYPE_DOUBLE);
	add_parameter(f, DUCKDB_TYPE_VARCHAR); // spec
	duckdb_logical_type value = duckdb_create_logical_type(DUCKDB_TYPE_DOUBLE);
	duckdb_logical_type list = duckdb_create_list_type(value);
	duckdb_aggregate_function_set_return_type(f, list);
	duckdb_destroy_logical_type(&list);
	duckdb_destroy_logical_type(&value);
}

static bool add_overload(duckdb_aggregate_function_set set, const char *name, const agg_function *what) {
	duckdb_aggregate_function f = duckdb_create_aggregate_function();
	duckdb_aggregate_function_set_name(f, name);
	set_signature(f, what->decoded);
	duckdb_aggregate_function_set_functions(f, state_size, init, agg_update, combine, agg_finalize);
	duckdb_aggregate_function_set_destructor(f, destroy);
	duckdb_aggregate_function_set_extra_info(f, (void *)what, NULL);
	bool ok = duckdb_add_aggregate_function_to_set(set, f) == DuckDBSuccess;
	duckdb_destroy_aggregate_function(&f);
	return ok;
}

int prom_register_range(duckdb_connection conn, char err[PROM_ERROR_BYTES]) {
	for (int fn = 0; fn < PROM_RANGE_FUNCTIONS; fn++) {
		char name[64];
		snprintf(name, sizeof name, "prom_%s", prom_range_name(fn));
		duckdb_aggregate_function_set set = duckdb_create_aggregate_function_set(name);
		bool ok = add_overload(set, name, &functions[fn][0]) && add_overload(set, name, &functions[fn][1]) &&
		          duckdb_register_aggregate_function_set(conn, set) == DuckDBSuccess;
		duckdb_destroy_aggregate_function_set(&set);
		if (!ok) {
			snprintf(err, PROM_ERROR_BYTES, "DuckDB refused %s", name);
			return 1;
		}
	}
	return 0;
}
