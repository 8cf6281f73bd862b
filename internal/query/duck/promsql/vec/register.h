// Registration of functions from tables.
#pragma once

#include "vec.h"

// Types of parameters and results.
typedef enum { VEC_END, VEC_DOUBLE, VEC_BIGINT, VEC_UINTEGER, VEC_UBIGINT, VEC_TIMESTAMP, VEC_VARCHAR, VEC_BLOB, VEC_LIST, VEC_CHOSEN, VEC_POINTS } vec_type;

#define VEC_MAX_PARAMETERS 5

// Fills out for the rows of a chunk, which has some. own is as in vec_specs. Returns false with a
// message.
typedef bool (*vec_run)(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]);

// A scalar function of DuckDB. All handle NULL inputs themselves.
typedef struct {
	const char *name;
	vec_type parameters[VEC_MAX_PARAMETERS + 1], result;
	vec_run run;
} vec_scalar;

// An aggregate of DuckDB. extra is the same in what vec_extra_of gives its functions.
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

// What a registered function has. own counts the memory of all its calls, whatever budget their
// specs name; NULL: the spec decides.
typedef struct {
	const void *extra;
	prom_budget *own; // a reference
} vec_extra;

VEC_INLINE const vec_extra *vec_extra_of(duckdb_function_info info) { return duckdb_aggregate_function_get_extra_info(info); }

// The budget of a call without a spec.
VEC_INLINE prom_budget *vec_budget_of(const vec_extra *x) { return x->own != NULL ? x->own : prom_budget_default(); }

// Register the functions of tables, each ended by an entry without a name; NULL ends the list of
// tables. Entries of one name that follow one another are overloads. only is the name of the one
// function that is registered, without a text for all. budget is the id of the functions' own
// budget, 0 for none. Return 0, or 1 with a message.
int vec_register_scalars(duckdb_connection conn, const vec_scalar *const *tables, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]);
int vec_register_aggregates(duckdb_connection conn, const vec_aggregate *const *tables, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]);

// Registers the scalar functions over lists of values, once per database. The arguments are those
// of vec_register_scalars.
int prom_register_vec(duckdb_connection conn, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]);
