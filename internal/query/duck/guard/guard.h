// A guard counts the large allocations of the threads that entered it, and refuses them beyond a
// limit or once it is stopped. DuckDB takes a refused allocation for the end of memory.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prom_guard prom_guard;

prom_guard *prom_guard_new(int64_t limit);
void prom_guard_free(prom_guard *g);
void prom_guard_stop(prom_guard *g);
bool prom_guard_exceeded(prom_guard *g);
// prom_guard_enter sets the guard of the calling thread, NULL for none.
void prom_guard_enter(prom_guard *g);
