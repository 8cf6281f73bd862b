// Scratch memory that one series leaves to the next.
#pragma once

#include "budget.h"

// Zero it but for the budget, use it for any number of series in one thread, free it.
typedef struct {
	prom_budget *budget;
	void *mem;
	size_t bytes;
} prom_scratch;

// n bytes that stay until the next call with the same scratch. NULL: refused.
void *prom_scratch_take(prom_scratch *s, size_t n);

void prom_scratch_free(prom_scratch *s);
