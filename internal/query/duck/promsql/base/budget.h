// Memory that is counted against a query's budget.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Room for an error message, its ending zero included.
#define PROM_ERROR_BYTES 256

// Memory. A budget counts the bytes of one query, says when it was cancelled, and notes what the query has to know of its execution. It lives until it was closed and its last allocation and
// reference are gone, so that memory which DuckDB frees late is still counted where it belongs. All of this may be used by any thread.
typedef struct prom_budget prom_budget;

// Budget 0: no limit, never cancelled. It needs no reference.
prom_budget *prom_budget_default(void);

// Opens a budget of limit bytes (0: no limit) and stores its id, which is never 0 and never used twice. NULL: out of memory.
prom_budget *prom_budget_open(int64_t limit, int64_t *id);

// Ends the life of an id; the opener's pointer is no longer valid. Returns the bytes that are still allocated.
int64_t prom_budget_close(prom_budget *b);
// Frees what is allocated and returns how much that was, in bytes. Nobody may use it any more: DuckDB forgets the states of an aggregate
// when a function fails as it finalizes them.
int64_t prom_budget_reclaim(prom_budget *b);

// The budget of an id with one more reference, or NULL if no open budget has it. 0 is the default budget.
prom_budget *prom_budget_acquire(int64_t id);
void prom_budget_release(prom_budget *b);

void prom_budget_cancel(prom_budget *b);
bool prom_cancelled(const prom_budget *b);

// Notes that the counts of a histogram were made monotonic by more than the rounding of floats explains.
void prom_budget_set_forced(prom_budget *b);
bool prom_budget_forced(const prom_budget *b);

int64_t prom_budget_limit(const prom_budget *b);
int64_t prom_budget_used(const prom_budget *b);
int64_t prom_budget_peak(const prom_budget *b);

// Bytes that the first refused allocation would have made, 0 if none was refused.
int64_t prom_budget_needed(const prom_budget *b);

// Memory of n bytes, aligned for every type; NULL if the limit or the machine forbids it. prom_realloc with NULL allocates; where it
// returns NULL the old memory stands. prom_free ignores NULL. The memory knows its budget.
void *prom_alloc(prom_budget *b, size_t n);
void *prom_realloc(prom_budget *b, void *p, size_t n);
void prom_free(void *p);

// Says whether n more bytes fit, which are not the budget's to hold; if not, they count as refused.
bool prom_budget_fits(prom_budget *b, size_t n);

// Writes why an allocation of b failed (its limit, or the machine's memory), or that its query was cancelled.
void prom_memory_error(const prom_budget *b, char err[PROM_ERROR_BYTES]);
void prom_cancel_error(char err[PROM_ERROR_BYTES]);
