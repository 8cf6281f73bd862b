// What the callbacks of the aggregates share: loops over the rows of a chunk and over states.
#pragma once

#include "../vec/register.h"

// The following functions return false with a message; extra is the aggregate's extra info.

// Adds the list of a row to a state.
typedef bool (*agg_add)(void *state, const void *extra, uint32_t ordinal, vec_list l, const prom_spec *spec, char err[PROM_ERROR_BYTES]);

// Calls add for the rows (ordinal, list, spec) that have an ordinal and values. keys are those that
// a spec must have.
void agg_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states, uint32_t keys, agg_add add);

// Moves the contents of a state to another one. Afterwards from is empty or must be destroyed.
typedef bool (*agg_move)(void *from, void *to, const void *extra, char err[PROM_ERROR_BYTES]);

void agg_combine(duckdb_function_info info, duckdb_aggregate_state *from, duckdb_aggregate_state *to, idx_t count, agg_move move);

// The number of values that the result of a state takes at most.
typedef uint32_t (*agg_steps)(const void *state);

// Writes the result of a state at row.
typedef bool (*agg_finish)(void *state, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]);

void agg_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset, agg_steps steps,
                  agg_finish finish);
