// The state of an aggregate of planes.h over the lists of one group, with or without DuckDB.
#pragma once

#include "planes.h"

// A state holds only the values of the first series until a second one arrives: many groups have
// one series, and planes are large. It starts as zeros.
typedef struct {
	prom_budget *budget; // alive as long as p is
	double *p;
	uint32_t n;  // steps: 1 as long as all lists had one element; 0: no series yet
	bool single; // p is a series, not planes
} agg_state;

// Adds a series, whose list must not be empty. Returns false with a message if the budget forbids
// it or the lengths do not fit.
bool agg_state_add(agg_state *s, const agg_planes *op, vec_list l, prom_budget *b, char err[PROM_ERROR_BYTES]);

// Moves the contents of a state to another one. Afterwards from is empty or must be freed.
bool agg_state_move(agg_state *from, agg_state *to, const agg_planes *op, char err[PROM_ERROR_BYTES]);

// Writes the result of a state that has series at its n steps, and whether any has a value. Returns
// false with a message if the query was cancelled or the budget forbids the memory.
bool agg_state_result(agg_state *s, const agg_planes *op, double *out, bool *any, char err[PROM_ERROR_BYTES]);

void agg_state_free(agg_state *s);
