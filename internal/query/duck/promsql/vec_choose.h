// Choosing k series at each step: topk, bottomk and limitk.
#pragma once

#include "vec_rows.h"

typedef enum { VEC_TOP, VEC_BOTTOM, VEC_LIMIT } vec_ranking;

// A series that is chosen at a step.
typedef struct {
	double v;
	uint32_t row;
} vec_candidate;

// The choice: step k has count[k] <= room candidates from all[k*room] on.
typedef struct {
	vec_candidate *all;
	uint32_t *count;
	uint32_t room;
} vec_choice;

// Chooses k of the rows at each step, which are in the order of their ordinals, as upstream's aggregationK of v0.315.0 does, ties
// included. 0 < k. Returns false with a message; the choice is to be freed if not.
bool vec_choose_rows(vec_ranking how, const vec_rows *rows, uint32_t k, vec_choice *to, char err[PROM_ERROR_BYTES]);
void vec_choice_free(vec_choice *c);

// Drops the rows, which become ordered by ordinal, that limitk with k chooses at no step.
bool vec_limit_prune(vec_rows *rows, uint32_t k, char err[PROM_ERROR_BYTES]);
