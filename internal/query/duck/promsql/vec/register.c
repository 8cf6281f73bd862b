// Registration of the functions over lists of values. Aggregates are function sets, for most have
// overloads.
#include "register.h"

#include <stdio.h>

static duckdb_logical_type plain_type(vec_type t) {
	static const duckdb_type types[] = {
	    [VEC_DOUBLE] = DUCKDB_TYPE_DOUBLE,   [VEC_BIGINT] = DUCKDB_TYPE_BIGINT,          [VEC_UINTEGER] = DUCKDB_TYPE_UINTEGER,
	    [VEC_UBIGINT] = DUCKDB_TYPE_UBIGINT, [VEC_TIMESTAMP] = DUCKDB_TYPE_TIMESTAMP_TZ, [VEC_VARCHAR] = DUCKDB_TYPE_VARCHAR,
	    [VEC_BLOB] = DUCKDB_TYPE_BLOB,
	};
	return duckdb_create_logical_type(types[t]);
}

static duckdb_logical_type list_of(duckdb_logical_type element) {
	duckdb_logical_type list = duckdb_create_list_type(element);
	duckdb_destroy_logical_type(&element);
	return list;
}

// STRUCT(i UINTEGER, v DOUBLE[])[]: the series that were chosen.
static duckdb_logical_type chosen_type(void) {
	duckdb_logical_type members[] = {plain_type(VEC_UINTEGER), list_of(plain_type(VEC_DOUBLE))};
	const char *names[] = {"i", "v"};
	duckdb_logical_type series = duckdb_create_struct_type(members, names, 2);
	duckdb_destroy_logical_type(&members[0]);
	duckdb_destroy_logical_type(&members[1]);
	return list_of(series);
}

static duckdb_logical_type type_of(vec_type t) {
	return t == VEC_LIST ? list_of(plain_type(VEC_DOUBLE)) : t == VEC_CHOSEN ? chosen_type() : plain_type(t);
}

static void run_scalar(duckdb_function_info info, duckdb_data_chunk in, duckdb_vector out) {
	const vec_scalar *s = duckdb_scalar_function_get_extra_info(info);
	char err[PROM_ERROR_BYTES];
	if (duckdb_data_chunk_get_size(in) > 0 && !s->run(in, out, err)) {
		duckdb_scalar_function_set_error(info, err);
	}
}

static duckdb_state add_scalar(duckdb_connection conn, const vec_scalar *s) {
	duckdb_scalar_function f = duckdb_create_scalar_function();
	duckdb_scalar_function_set_name(f, s->name);
	for (const vec_type *p = s->parameters; *p != VEC_END; p++) {
		duckdb_logical_type t = type_of(*p);
		duckdb_scalar_function_add_parameter(f, t);
		duckdb_destroy_logical_type(&t);
	}
	duckdb_logical_type t = type_of(s->result);
	duckdb_scalar_function_set_return_type(f, t);
	duckdb_destroy_logical_type(&t);
	duckdb_scalar_function_set_special_handling(f);
	duckdb_scalar_function_set_extra_info(f, (void *)(uintptr_t)s, NULL);
	duckdb_scalar_function_set_function(f, run_scalar);
	duckdb_state state = duckdb_register_scalar_function(conn, f);
	duckdb_destroy_scalar_function(&f);
	return state;
}

static duckdb_aggregate_function overload(const vec_aggregate *a, bool spec) {
	duckdb_aggregate_function f = duckdb_create_aggregate_function();
	duckdb_aggregate_function_set_name(f, a->name);
	for (const vec_type *p = a->parameters; *p != VEC_END; p++) {
		duckdb_logical_type t = type_of(*p);
		duckdb_aggregate_function_add_parameter(f, t);
		duckdb_destroy_logical_type(&t);
	}
	if (spec) {
		duckdb_logical_type t = plain_type(VEC_VARCHAR);
		duckdb_aggregate_function_add_parameter(f, t);
		duckdb_destroy_logical_type(&t);
	}
	duckdb_logical_type t = type_of(a->result);
	duckdb_aggregate_function_set_return_type(f, t);
	duckdb_destroy_logical_type(&t);
	duckdb_aggregate_function_set_special_handling(f);
	duckdb_aggregate_function_set_functions(f, a->size, a->init, a->update, a->combine, a->finalize);
	duckdb_aggregate_function_set_destructor(f, a->destroy);
	duckdb_aggregate_function_set_extra_info(f, (void *)(uintptr_t)a->extra, NULL);
	return f;
}

// Registers the entries that follow one another under one name as overloads, and moves on to the
// last of them.
static duckdb_state add_aggregate(duckdb_connection conn, const vec_aggregate **at) {
	const vec_aggregate *a = *at;
	duckdb_aggregate_function_set set = duckdb_create_aggregate_function_set(a->name);
	duckdb_state state = DuckDBSuccess;
	for (const char *name = a->name; a->name != NULL && strcmp(a->name, name) == 0; a++) {
		*at = a;
		for (int spec = 0; spec <= a->spec && state == DuckDBSuccess; spec++) {
			duckdb_aggregate_function f = overload(a, spec != 0);
			state = duckdb_add_aggregate_function_to_set(set, f);
			duckdb_destroy_aggregate_function(&f);
		}
	}
	if (state == DuckDBSuccess) {
		state = duckdb_register_aggregate_function_set(conn, set);
	}
	duckdb_destroy_aggregate_function_set(&set);
	return state;
}

int vec_register_scalars(duckdb_connection conn, const vec_scalar *const *tables, char err[PROM_ERROR_BYTES]) {
	for (; *tables != NULL; tables++) {
		for (const vec_scalar *s = *tables; s->name != NULL; s++) {
			if (add_scalar(conn, s) == DuckDBError) {
				snprintf(err, PROM_ERROR_BYTES, "DuckDB refused %s", s->name);
				return 1;
			}
		}
	}
	return 0;
}

int vec_register_aggregates(duckdb_connection conn, const vec_aggregate *const *tables, char err[PROM_ERROR_BYTES]) {
	for (; *tables != NULL; tables++) {
		for (const vec_aggregate *a = *tables; a->name != NULL; a++) {
			if (add_aggregate(conn, &a) == DuckDBError) {
				snprintf(err, PROM_ERROR_BYTES, "DuckDB refused %s", a->name);
				return 1;
			}
		}
	}
	return 0;
}

extern const vec_scalar vec_scalars_pick[], vec_scalars_math[], vec_scalars_time[], vec_scalars_over[], vec_scalars_pack[];

int prom_register_vec(duckdb_connection conn, char err[PROM_ERROR_BYTES]) {
	const vec_scalar *const tables[] = {vec_scalars_pick, vec_scalars_math, vec_scalars_time, vec_scalars_over, vec_scalars_pack, NULL};
	return vec_register_scalars(conn, tables, err);
}
