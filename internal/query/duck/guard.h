// A guard counts the large allocations of the threads that entered it, and refuses them beyond a
// limit, where the process has no room, or once it is stopped. DuckDB takes a refused allocation
// for the end of memory. While a statement is planned, operator new counts as well, whatever the
// size.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prom_guard prom_guard;

prom_guard *prom_guard_new(int64_t limit);
void prom_guard_free(prom_guard *g);
void prom_guard_stop(prom_guard *g);
int64_t prom_guard_held(prom_guard *g); // bytes of large allocations that are not freed
bool prom_guard_exceeded(prom_guard *g);
bool prom_guard_crowded(prom_guard *g); // an allocation was refused because the process had no room
// prom_guard_room sets how many bytes all guards together may still allocate, until the next call. One
// thread calls it at a time, every few ms, as the memory of the process is measured.
void prom_guard_room(int64_t bytes);
// prom_guard_plan begins the planning of a statement that may allocate limit bytes in all, freed ones
// included; 0 ends it.
void prom_guard_plan(prom_guard *g, int64_t limit);
bool prom_guard_planned(prom_guard *g); // a planning went beyond its limit
// prom_guard_refuses reports whether operator new has to throw instead of allocating n bytes.
bool prom_guard_refuses(size_t n);
// prom_guard_enter sets the guard of the calling thread, NULL for none.
void prom_guard_enter(prom_guard *g);
