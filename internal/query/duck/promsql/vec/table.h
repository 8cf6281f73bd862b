// Rows that Go publishes for the table function prom_rows. Independent of DuckDB.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One list of values. n is 0: the row has none, which SQL sees as NULL.
typedef struct {
	const double *v;
	size_t n;
} prom_list;

// Published rows. The lists and ordinals point to memory of the publisher, which may only be read
// between prom_rows_enter and prom_rows_leave. All functions are safe for concurrent use.
typedef struct prom_rows {
	int64_t id;
	size_t count;            // rows
	const uint32_t *ordinal; // one per row
	prom_list *lists;        // one per row
	size_t chunks;
	size_t *first; // row of each chunk, and where the last one ends
	struct prom_rows_life *life;
} prom_rows;

// Returns unlisted rows with their counts set and the rest zero, to be filled and listed. NULL: out
// of memory.
prom_rows *prom_rows_new(size_t count, size_t chunks);

// Lists the rows under an id, which is never 0 and never used twice.
void prom_rows_list(prom_rows *r);

// Unlists the rows, waits until no thread is between enter and leave, and lets none enter
// afterwards. The pointer is no longer valid.
void prom_rows_close(prom_rows *r);

// The rows of an id with one more reference, or NULL if there are none of that id.
prom_rows *prom_rows_acquire(int64_t id);
prom_rows *prom_rows_hold(prom_rows *r);
void prom_rows_release(prom_rows *r);

// false: the rows are closed.
bool prom_rows_enter(prom_rows *r);
void prom_rows_leave(prom_rows *r);
