// Series that an aggregate has to keep until it has seen all of them.
#pragma once

#include "vec.h"

typedef struct {
	uint32_t i; // ordinal
	uint32_t n; // steps: 1 stands for all
	double le;  // upper bound, of a bucket
	double *v;
} vec_row;

VEC_INLINE double vec_row_at(const vec_row *r, uint32_t k) { return r->v[r->n > 1 ? k : 0]; }

typedef struct {
	prom_budget *budget; // alive as long as there are rows
	vec_row *rows;
	uint32_t count, room;
	uint32_t n; // steps of the longest; 0 without rows
} vec_rows;

// Keeps a copy of a series. Returns false with a message if the budget forbids it or the lengths do not fit.
bool vec_rows_add(vec_rows *r, vec_row row, prom_budget *b, char err[PROM_ERROR_BYTES]);

// Moves all series of from to to.
bool vec_rows_move(vec_rows *from, vec_rows *to, char err[PROM_ERROR_BYTES]);

void vec_rows_free(vec_rows *r);

void vec_rows_by_ordinal(vec_rows *r);
void vec_rows_by_bound(vec_rows *r);

// Scratch memory of the rows' budget: count elements of size bytes, NULL with a message.
void *vec_rows_scratch(const vec_rows *r, size_t count, size_t size, char err[PROM_ERROR_BYTES]);

// What DuckDB asks of a state that begins with vec_rows: it starts as zeros and is destroyed by freeing the rows.
void vec_rows_destroy(duckdb_aggregate_state *states, idx_t count);

// Whether the query of the rows was cancelled, with a message.
bool vec_rows_cancelled(const vec_rows *r, char err[PROM_ERROR_BYTES]);
