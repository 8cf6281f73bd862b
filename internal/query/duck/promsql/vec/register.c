// Registration of the functions over lists of values, and of the aggregates across series.
// Aggregates are function sets, for most have overloads.
#include "register.h"

#include <stdio.h>
#include <stdlib.h>

static duckdb_logical_type plain_type(vec_type t) {
	static const duckdb_type types[] = {
	    [VEC_DOUBLE] = DUCKDB_TYPE_DOUBLE,   [VEC_BIGINT] = DUCKDB_TYPE_BIGINT,          [VEC_UINTEGER] = DUCKDB_TYPE_UINTEGER,
	    [VEC_UBIGINT] = DUCKDB_TYPE_UBIGINT, [VEC_TIMESTAMP] = DUCKDB_TYPE_TIMESTAMP_TZ, [VEC_VARCHAR] = DUCKDB_TYPE_VARCHAR,
	    [VEC_BLOB] = DUCKDB_TYPE_BLOB,       [VEC_INTERVAL] = DUCKDB_TYPE_INTERVAL,
	};
	return duckdb_create_logical_type(types[t]);
}

static duckdb_logical_type list_of(duckdb_logical_type element) {
	duckdb_logical_type list = duckdb_create_list_type(element);
	duckdb_destroy_logical_type(&element);
	return list;
}

// STRUCT(i UINTEGER, v DOUBLE[])[], the series that were chosen, or STRUCT(ts TIMESTAMPTZ, value
// DOUBLE)[], the points of one.
static duckdb_logical_type pairs_type(bool chosen) {
	duckdb_logical_type members[] = {plain_type(chosen ? VEC_UINTEGER : VEC_TIMESTAMP), chosen ? list_of(plain_type(VEC_DOUBLE)) : plain_type(VEC_DOUBLE)};
	const char *names[] = {chosen ? "i" : "ts", chosen ? "v" : "value"};
	duckdb_logical_type series = duckdb_create_struct_type(members, names, 2);
	duckdb_destroy_logical_type(&members[0]);
	duckdb_destroy_logical_type(&members[1]);
	return list_of(series);
}

static duckdb_logical_type type_of(vec_type t) {
	return t == VEC_LIST ? list_of(plain_type(VEC_DOUBLE)) : t == VEC_CHOSEN || t == VEC_POINTS ? pairs_type(t == VEC_CHOSEN) : plain_type(t);
}

static void run_scalar(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	const vec_extra *x = duckdb_scalar_function_get_extra_info(info);
	char err[PROM_ERROR_BYTES];
	if (duckdb_data_chunk_get_size(in) > 0 && !x->scalar->run(in, out, x->own, err)) {
		duckdb_scalar_function_set_error(info, err);
	}
}

static void drop(void *extra) {
	vec_extra *x = extra;
	if (x->own != NULL) {
		prom_budget_release(x->own);
	}
	free(x);
}

// NULL: there is no memory or no such budget.
static vec_extra *extra_of(int64_t budget) {
	vec_extra *x = calloc(1, sizeof *x);
	if (x == NULL) {
		return NULL;
	}
	x->own = budget == 0 ? NULL : prom_budget_acquire(budget);
	if (budget != 0 && x->own == NULL) {
		free(x);
		return NULL;
	}
	return x;
}

// Gives a function a type by a call of DuckDB.
#define GIVE(call, f, type) \
	do { \
		duckdb_logical_type given = (type); \
		call(f, given); \
		duckdb_destroy_logical_type(&given); \
	} while (0)

static duckdb_state add_scalar(duckdb_connection conn, const vec_scalar *s, int64_t budget) {
	vec_extra *extra = extra_of(budget);
	if (extra == NULL) {
		return DuckDBError;
	}
	extra->scalar = s;
	duckdb_scalar_function f = duckdb_create_scalar_function();
	duckdb_scalar_function_set_name(f, s->name);
	for (const vec_type *p = s->parameters; *p != VEC_END; p++) {
		GIVE(duckdb_scalar_function_add_parameter, f, type_of(*p));
	}
	GIVE(duckdb_scalar_function_set_return_type, f, type_of(s->result));
	duckdb_scalar_function_set_special_handling(f);
	duckdb_scalar_function_set_extra_info(f, extra, drop);
	duckdb_scalar_function_set_function(f, run_scalar);
	duckdb_state state = duckdb_register_scalar_function(conn, f);
	duckdb_destroy_scalar_function(&f);
	return state;
}

static idx_t size(duckdb_function_info info) { return vec_aggregate_of(info)->size; }

static void init(duckdb_function_info info, duckdb_aggregate_state s) { memset(s, 0, vec_aggregate_of(info)->size); }

static void update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states) {
	const vec_extra *x = vec_extra_of(info);
	const vec_aggregate *a = &x->aggregate;
	char err[PROM_ERROR_BYTES];
	idx_t n = 0; // parameters before the spec
	while (a->parameters[n] != VEC_END && a->parameters[n] != VEC_VARCHAR) {
		n++;
	}
	vec_lists lists, phis;
	bool ok = vec_lists_open(&lists, in, n - 1, err) && (n < 3 || vec_lists_open(&phis, in, 0, err));
	vec_column number = vec_column_of(in, n == 3); // ordinal or bound; the list if there are none
	vec_specs specs = {0};
	bool has_spec = duckdb_data_chunk_get_column_count(in) > n;
	prom_spec none = {.budget = vec_budget_of(x)};
	if (has_spec) {
		vec_specs_open(&specs, in, n, a->keys, PROM_KEYS_GRID, x->own);
	}
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); ok && i < rows; i++) {
		vec_row row = {.list = vec_list_at(&lists, i), .phi = {.n = 1}, .spec = has_spec ? vec_specs_at(&specs, i, err) : &none};
		ok = row.spec != NULL;
		if (!vec_valid(number.validity, i)) {
			continue;
		}
		if (n == 2) {
			row.ordinal = ((const uint32_t *)number.data)[i];
		} else if (n == 3) {
			row.le = ((const double *)number.data)[i];
			row.phi = vec_list_at(&phis, i);
		}
		if (ok && row.list.n > 0 && row.phi.n > 0) {
			ok = a->add(states[i], a->extra, &row, err);
		}
	}
	vec_specs_close(&specs);
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
	}
}

static void combine(duckdb_function_info info, duckdb_aggregate_state *from, duckdb_aggregate_state *to, idx_t count) {
	const vec_aggregate *a = vec_aggregate_of(info);
	char err[PROM_ERROR_BYTES];
	for (idx_t i = 0; i < count; i++) {
		if (!a->move(from[i], to[i], a->extra, err)) {
			duckdb_aggregate_function_set_error(info, err);
			return;
		}
	}
}

static void finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset) {
	const vec_aggregate *a = vec_aggregate_of(info);
	char err[PROM_ERROR_BYTES];
	idx_t elements = 0;
	for (idx_t i = 0; i < count; i++) {
		elements += a->steps(states[i]);
	}
	vec_out out;
	bool ok = vec_out_open(&out, result, elements, err);
	for (idx_t i = 0; ok && i < count; i++) {
		ok = a->finish(states[i], a->extra, &out, offset + i, err);
	}
	if (ok) {
		vec_out_close(&out);
	} else {
		duckdb_aggregate_function_set_error(info, err);
	}
}

// NULL: there is no memory or no such budget.
static duckdb_aggregate_function overload(const vec_aggregate *a, bool spec, int64_t budget) {
	vec_extra *extra = extra_of(budget);
	if (extra == NULL) {
		return NULL;
	}
	extra->aggregate = *a;
	duckdb_aggregate_function f = duckdb_create_aggregate_function();
	duckdb_aggregate_function_set_name(f, a->name);
	for (const vec_type *p = a->parameters; *p != VEC_END; p++) {
		GIVE(duckdb_aggregate_function_add_parameter, f, type_of(*p));
	}
	if (spec) {
		GIVE(duckdb_aggregate_function_add_parameter, f, plain_type(VEC_VARCHAR));
	}
	GIVE(duckdb_aggregate_function_set_return_type, f, type_of(a->result));
	duckdb_aggregate_function_set_special_handling(f);
	duckdb_aggregate_function_set_functions(f, size, init, a->update == NULL ? update : a->update, a->combine == NULL ? combine : a->combine,
	                                        a->finalize == NULL ? finalize : a->finalize);
	duckdb_aggregate_function_set_destructor(f, a->destroy);
	duckdb_aggregate_function_set_extra_info(f, extra, drop);
	return f;
}

// Registers the entries that follow one another under one name as overloads, and moves on to the
// last of them.
static duckdb_state add_aggregate(duckdb_connection conn, const vec_aggregate **at, int64_t budget) {
	const vec_aggregate *a = *at;
	duckdb_aggregate_function_set set = duckdb_create_aggregate_function_set(a->name);
	duckdb_state state = DuckDBSuccess;
	for (const char *name = a->name; a->name != NULL && strcmp(a->name, name) == 0; a++) {
		*at = a;
		for (int spec = 0; spec <= a->spec && state == DuckDBSuccess; spec++) {
			duckdb_aggregate_function f = overload(a, spec != 0, budget);
			state = f == NULL ? DuckDBError : duckdb_add_aggregate_function_to_set(set, f);
			duckdb_destroy_aggregate_function(&f);
		}
	}
	if (state == DuckDBSuccess) {
		state = duckdb_register_aggregate_function_set(conn, set);
	}
	duckdb_destroy_aggregate_function_set(&set);
	return state;
}

static bool wanted(vec_text only, const char *name) { return only.len == 0 || vec_text_is(only, name); }

int vec_register_aggregates(duckdb_connection conn, const vec_aggregate *const *tables, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]) {
	for (; *tables != NULL; tables++) {
		for (const vec_aggregate *a = *tables; a->name != NULL; a++) {
			if (wanted(only, a->name) && add_aggregate(conn, &a, budget) == DuckDBError) {
				snprintf(err, PROM_ERROR_BYTES, "DuckDB refused %s", a->name);
				return 1;
			}
		}
	}
	return 0;
}

extern const vec_scalar vec_scalars_pick[], vec_scalars_math[], vec_scalars_time[], vec_scalars_over[], vec_scalars_pack[], vec_scalars_points[];
extern const vec_aggregate agg_table_planes[], agg_table_quantile[], agg_table_topk[], agg_table_histogram[];

int prom_register_vec(duckdb_connection conn, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]) {
	const vec_scalar *const tables[] = {vec_scalars_pick, vec_scalars_math, vec_scalars_time, vec_scalars_over, vec_scalars_pack, vec_scalars_points, NULL};
	for (const vec_scalar *const *table = tables; *table != NULL; table++) {
		for (const vec_scalar *s = *table; s->name != NULL; s++) {
			if (wanted(only, s->name) && add_scalar(conn, s, budget) == DuckDBError) {
				snprintf(err, PROM_ERROR_BYTES, "DuckDB refused %s", s->name);
				return 1;
			}
		}
	}
	const vec_aggregate *const aggregates[] = {agg_table_planes, agg_table_quantile, agg_table_topk, agg_table_histogram, NULL};
	return vec_register_aggregates(conn, aggregates, only, budget, err);
}
