// Series that an aggregate has to keep until it has seen all of them.
#pragma once

#include "register.h"

typedef struct {
	uint32_t i; // ordinal
	uint32_t n; // steps: 1 stands for all
	double le;  // upper bound, of a bucket
	double *v;
} agg_row;

VEC_INLINE double agg_row_at(const agg_row *r, uint32_t k) { return r->v[r->n > 1 ? k : 0]; }

typedef struct {
	prom_budget *budget; // alive as long as there are rows
	agg_row *rows;
	uint32_t count, room;
	uint32_t n; // steps of the longest; 0 without rows
} agg_rows;

// Keeps a copy of a series. Returns false with a message if the budget forbids it or the lengths do
// not fit.
bool agg_rows_add(agg_rows *r, const vec_row *row, char err[PROM_ERROR_BYTES]);

// Moves all series of from to to.
bool agg_rows_move(agg_rows *from, agg_rows *to, char err[PROM_ERROR_BYTES]);

void agg_rows_free(agg_rows *r);

void agg_rows_by_ordinal(agg_rows *r);
void agg_rows_by_bound(agg_rows *r);

// Writes the quantile phi of the values at each step, in the order of ordinals, and sets *any if
// there is one (quantile.c).
bool agg_rows_quantile(agg_rows *r, double phi, double *out, bool *any, char err[PROM_ERROR_BYTES]);

// Writes the quantile of the histogram at each step, whose buckets are the rows: phi.v has it, an
// element for each of phi.n steps or one for all. Where no bucket has a value, there is none. Sets
// *any if there is one, and *forced if counts had to be made monotonic (histogram.c).
bool agg_rows_histogram_quantile(agg_rows *r, const agg_row *phi, double *out, bool *any, bool *forced, char err[PROM_ERROR_BYTES]);

// Scratch memory of the rows' budget: count elements of size bytes, NULL with a message.
void *agg_rows_scratch(const agg_rows *r, size_t count, size_t size, char err[PROM_ERROR_BYTES]);

// The destructor of a state that begins with agg_rows; such a state starts as zeros.
void agg_rows_destroy(duckdb_aggregate_state *states, idx_t count);

// Whether the query of the rows was cancelled, with a message.
bool agg_rows_cancelled(const agg_rows *r, char err[PROM_ERROR_BYTES]);
