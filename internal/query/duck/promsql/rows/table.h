// Rows that Go publishes for the table function prom_rows. No DuckDB in here.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One list of values. n is 0: the row has none, which SQL sees as NULL.
typedef struct {
	const double *v;
	size_t n;
} prom_list;

// Published rows. What the lists and ordinals point to is not theirs: nobody may look at it but between prom_rows_enter and
// prom_rows_leave. All of this may be used by any thread.
typedef struct prom_rows {
	int64_t id;
	size_t count;            // rows
	const uint32_t *ordinal; // one per row
	prom_list *lists;        // one per row
	size_t chunks;
	size_t *first; // row of each chunk, and where the last one ends
	struct prom_rows_life *life;
} prom_rows;

// Room for rows that nobody can find yet: zero but for the counts, to be filled and listed. NULL: out of memory.
prom_rows *prom_rows_new(size_t count, size_t chunks);

// Gives the rows an id, which is never 0 and never used twice, so that they are found.
void prom_rows_list(prom_rows *r);

// Ends the life of the id. Waits until nobody is between enter and leave; afterwards nobody gets there. The pointer is no longer valid.
void prom_rows_close(prom_rows *r);

// The rows of an id with one more reference, or NULL if there are none of that id.
prom_rows *prom_rows_acquire(int64_t id);
prom_rows *prom_rows_hold(prom_rows *r);
void prom_rows_release(prom_rows *r);

// false: the rows are closed.
bool prom_rows_enter(prom_rows *r);
void prom_rows_leave(prom_rows *r);
