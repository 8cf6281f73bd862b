// Aggregates that need all series of a group at once, outside of SQL, over lists that stay in
// another's memory.
#pragma once

#include "choose.h"

typedef struct {
	agg_rows rows;      // to be filled, ascending by ordinal; their lists are not freed
	agg_choice choice;  // of prom_lists_choose
	uint32_t *place;    // of each row among the chosen ones, or AGG_NOWHERE
	uint32_t chosen;    // rows
} prom_lists;

// Opens count rows of lists of steps elements, under a budget, of which a reference is held until
// they are closed. NULL with a message: there is no such budget, or no memory.
prom_lists *prom_lists_open(uint32_t count, uint32_t steps, int64_t budget, char err[PROM_ERROR_BYTES]);
void prom_lists_close(prom_lists *l);

// Chooses k > 0 rows at each step: topk, bottomk or limitk. It is called once for the same lists.
// Returns false with a message.
bool prom_lists_choose(prom_lists *l, const char *op, size_t len, uint32_t k, char err[PROM_ERROR_BYTES]);
