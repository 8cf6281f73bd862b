// Scratch memory that one series leaves to the next.
#pragma once

#include "budget.h"

// Initialise the budget and zero the rest. One thread uses it for any number of series, then frees
// it.
typedef struct {
	prom_budget *budget;
	void *mem;
	size_t bytes;
} prom_scratch;

// Returns n bytes that are valid until the next call with the same scratch, or NULL if the budget
// refuses them.
void *prom_scratch_take(prom_scratch *s, size_t n);

void prom_scratch_free(prom_scratch *s);
