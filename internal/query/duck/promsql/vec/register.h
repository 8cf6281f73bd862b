// Registration of functions from tables.
#pragma once

#include "vec.h"

// Types of parameters and results.
typedef enum { VEC_END, VEC_DOUBLE, VEC_BIGINT, VEC_UINTEGER, VEC_UBIGINT, VEC_TIMESTAMP, VEC_VARCHAR, VEC_BLOB, VEC_INTERVAL, VEC_LIST, VEC_CHOSEN, VEC_POINTS } vec_type;

#define VEC_MAX_PARAMETERS 6

// Fills out for the rows of a chunk, which has some. own is as in vec_specs. Returns false with a
// message.
typedef bool (*vec_run)(duckdb_data_chunk in, duckdb_vector out, prom_budget *own, char err[PROM_ERROR_BYTES]);

// A scalar function of DuckDB. All handle NULL inputs themselves.
typedef struct {
	const char *name;
	vec_type parameters[VEC_MAX_PARAMETERS + 1], result;
	vec_run run;
} vec_scalar;

// A row of an aggregate: its list and phi have values.
typedef struct {
	vec_list list, phi;
	uint32_t ordinal;
	double le; // upper bound, of a bucket
	const prom_spec *spec;
} vec_row;

// An aggregate of DuckDB. Its arguments are (list), (ordinal, list) or (phi, le, list), and then a
// spec. Its functions return false with a message; extra is that of the aggregate.
typedef struct {
	const char *name;
	vec_type parameters[VEC_MAX_PARAMETERS + 1], result;
	bool spec; // has a second overload with one more parameter, a spec
	const void *extra;
	size_t size;                          // of a state, which starts as zeros
	duckdb_aggregate_destroy_t destroy;   // of states
	duckdb_aggregate_update_t update;     // NULL: by add
	duckdb_aggregate_combine_t combine;   // NULL: by move
	duckdb_aggregate_finalize_t finalize; // NULL: by finish
	uint32_t keys;                        // that the spec must have
	bool (*add)(void *state, const void *extra, const vec_row *row, char err[PROM_ERROR_BYTES]); // adds a row without NULLs
	// Moves the contents of a state to another one. Afterwards from is empty or must be destroyed.
	bool (*move)(void *from, void *to, const void *extra, char err[PROM_ERROR_BYTES]);
	uint32_t (*steps)(const void *state); // values that the result of a state takes at most
	// Writes the result of a state at row.
	bool (*finish)(void *state, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]);
} vec_aggregate;

// What a registered function has: its scalar, or its aggregate, whose name and parameters are not
// read any more. own counts the memory of all its calls, whatever budget their specs name; NULL:
// the spec decides.
typedef struct {
	const vec_scalar *scalar;
	vec_aggregate aggregate;
	prom_budget *own; // a reference
} vec_extra;

// Those of an aggregate.
VEC_INLINE const vec_extra *vec_extra_of(duckdb_function_info info) { return duckdb_aggregate_function_get_extra_info(info); }
VEC_INLINE const vec_aggregate *vec_aggregate_of(duckdb_function_info info) { return &vec_extra_of(info)->aggregate; }

// The budget of a call without a spec.
VEC_INLINE prom_budget *vec_budget_of(const vec_extra *x) { return x->own != NULL ? x->own : prom_budget_default(); }

// Registers the aggregates of tables, each ended by an entry without a name; NULL ends the list of
// tables. Entries of one name that follow one another are overloads. only is the name of the one
// function that is registered, empty for all. budget is the id of the functions' own
// budget, 0 for none. Returns 0, or 1 with a message.
int vec_register_aggregates(duckdb_connection conn, const vec_aggregate *const *tables, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]);

// Registers the scalar functions over lists of values and the aggregates across series, once per
// database, likewise.
int prom_register_vec(duckdb_connection conn, vec_text only, int64_t budget, char err[PROM_ERROR_BYTES]);
