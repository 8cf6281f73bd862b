// Memory that is counted against a query's budget.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Room for an error message, its ending zero included.
#define PROM_ERROR_BYTES 256

// A budget counts the bytes of one query and holds flags about its execution. It lives until it is
// closed and its last allocation and reference are gone, so memory that DuckDB frees late is still
// counted in the right budget. All functions are safe for concurrent use.
typedef struct prom_budget prom_budget;

// Budget 0 has no limit and is never cancelled. It needs no reference.
prom_budget *prom_budget_default(void);

// Opens a budget of limit bytes (0: no limit) and stores its id, which is never 0 and never used
// twice. NULL: out of memory.
prom_budget *prom_budget_open(int64_t limit, int64_t *id);

// Ends the life of an id; the opener's pointer is no longer valid. Returns the bytes that are still
// allocated.
int64_t prom_budget_close(prom_budget *b);
// Frees all allocations and returns their bytes. No one may use them any more. DuckDB leaks the
// states of an aggregate if finalize fails.
int64_t prom_budget_reclaim(prom_budget *b);

// Returns the budget of an id with one more reference, NULL if no open budget has the id. Id 0 is
// the default budget.
prom_budget *prom_budget_acquire(int64_t id);
void prom_budget_release(prom_budget *b);

void prom_budget_cancel(prom_budget *b);
bool prom_cancelled(const prom_budget *b);

// Notes that the counts of a histogram were made monotonic by more than rounding explains.
void prom_budget_set_forced(prom_budget *b);

// What a budget has noted.
typedef struct {
	int64_t limit, used, peak; // bytes
	int64_t needed;            // bytes that would have been in use after the first refused allocation, 0: none was refused
	int64_t process_needed;    // the same of the process, after the first allocation that its limit refused
	bool forced;
} prom_counts;

prom_counts prom_budget_counts(const prom_budget *b);

// prom_alloc returns n bytes, aligned for every type, or NULL if the limit or the machine refuses
// them. prom_realloc of NULL allocates; if it returns NULL the old memory is unchanged. prom_free
// ignores NULL. The header of the memory names its budget.
void *prom_alloc(prom_budget *b, size_t n);
void *prom_realloc(prom_budget *b, void *p, size_t n);
void prom_free(void *p);

// The limit of the process for the bytes of all budgets together; 0: no limit.
void prom_process_set_limit(int64_t limit);
int64_t prom_process_limit(void);

// Writes why an allocation of b failed (its limit, the process's, or the machine's memory), or that
// its query was cancelled, and returns false.
bool prom_memory_error(const prom_budget *b, char err[PROM_ERROR_BYTES]);
bool prom_cancel_error(char err[PROM_ERROR_BYTES]);

// Scratch memory that one series leaves to the next: initialise the budget and zero the rest. One
// thread uses it for any number of series, then frees it.
typedef struct {
	prom_budget *budget;
	void *mem;
	size_t bytes;
} prom_scratch;

// Returns n bytes that are valid until the next call with the same scratch, or NULL if the budget
// refuses them.
void *prom_scratch_take(prom_scratch *s, size_t n);

void prom_scratch_free(prom_scratch *s);
