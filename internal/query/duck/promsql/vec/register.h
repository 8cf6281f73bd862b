// Registration of functions from tables.
#pragma once

#include "vec.h"

// Types of parameters and results.
typedef enum { VEC_END, VEC_DOUBLE, VEC_BIGINT, VEC_UINTEGER, VEC_UBIGINT, VEC_TIMESTAMP, VEC_VARCHAR, VEC_BLOB, VEC_LIST, VEC_CHOSEN } vec_type;

#define VEC_MAX_PARAMETERS 5

// Fills out for the rows of a chunk, which has some. Returns false with a message.
typedef bool (*vec_run)(duckdb_data_chunk in, duckdb_vector out, char err[PROM_ERROR_BYTES]);

// A scalar function of DuckDB. All handle NULL inputs themselves.
typedef struct {
	const char *name;
	vec_type parameters[VEC_MAX_PARAMETERS + 1], result;
	vec_run run;
} vec_scalar;

// An aggregate of DuckDB. extra is what duckdb_aggregate_function_get_extra_info gives its
// functions.
typedef struct {
	const char *name;
	vec_type parameters[VEC_MAX_PARAMETERS + 1], result;
	bool spec; // has a second overload with one more parameter, a spec
	const void *extra;
	duckdb_aggregate_state_size size;
	duckdb_aggregate_init_t init;
	duckdb_aggregate_update_t update;
	duckdb_aggregate_combine_t combine;
	duckdb_aggregate_finalize_t finalize;
	duckdb_aggregate_destroy_t destroy;
} vec_aggregate;

// Defines state_size and state_init of an aggregate whose state is a struct with initial values.
#define VEC_STATE(type, values) \
	static idx_t state_size(duckdb_function_info info) { \
		(void)info; \
		return sizeof(type); \
	} \
	static void state_init(duckdb_function_info info, duckdb_aggregate_state s) { \
		(void)info; \
		*(type *)s = (type){values}; \
	}

// Register the functions of tables, each ended by an entry without a name; NULL ends the list of
// tables. Entries of one name that follow one another are overloads. Return 0, or 1 with a message.
int vec_register_scalars(duckdb_connection conn, const vec_scalar *const *tables, char err[PROM_ERROR_BYTES]);
int vec_register_aggregates(duckdb_connection conn, const vec_aggregate *const *tables, char err[PROM_ERROR_BYTES]);

// Registers the scalar functions over lists of values, once per database. Returns 0, or 1 with a
// message.
int prom_register_vec(duckdb_connection conn, char err[PROM_ERROR_BYTES]);
