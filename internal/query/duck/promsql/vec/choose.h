// Choosing k series at each step: topk, bottomk and limitk.
#pragma once

#include "rows.h"

typedef enum { AGG_TOP, AGG_BOTTOM, AGG_LIMIT } agg_ranking;

// A series that is chosen at a step.
typedef struct {
	double v;
	uint32_t row;
} agg_candidate;

// The choice: step k has count[k] <= room candidates from all[k*room] on.
typedef struct {
	agg_candidate *all;
	uint32_t *count;
	uint32_t room;
} agg_choice;

// Chooses k > 0 rows at each step as upstream's aggregationK of v0.315.0 does, ties included. The
// rows must be ordered by ordinal. Returns false with a message; after true the caller frees the
// choice.
bool agg_choose_rows(agg_ranking how, const agg_rows *rows, uint32_t k, agg_choice *to, char err[PROM_ERROR_BYTES]);
void agg_choice_free(agg_choice *c);

#define AGG_NOWHERE UINT32_MAX

// Sets the position of each row among the chosen ones, or AGG_NOWHERE. Returns the number of chosen
// rows.
uint32_t agg_choice_places(const agg_choice *c, const agg_rows *rows, uint32_t *place);

// Writes the values of the chosen rows one after another, each with an element for every step.
void agg_choice_write(const agg_choice *c, const agg_rows *rows, const uint32_t *place, uint32_t chosen, double *to);

// Orders the rows by ordinal and drops those that limitk with k chooses at no step.
bool agg_limit_prune(agg_rows *rows, uint32_t k, char err[PROM_ERROR_BYTES]);
