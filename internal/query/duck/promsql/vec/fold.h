// Aggregates across series outside of SQL: series are added one by one, as they are computed, or
// are lists in memory that is not DuckDB's.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../kernel/budget.h"

// The states of the groups of one aggregation. For one thread at a time.
typedef struct prom_fold prom_fold;

// Opens states for groups of an aggregate ("sum"), with a list of steps numbers each. A reference
// of the budget is held until it is closed. NULL with a message: there is no such aggregate or
// budget, or no memory.
prom_fold *prom_fold_open(const char *name, size_t len, uint32_t groups, uint32_t steps, int64_t budget, char err[PROM_ERROR_BYTES]);
void prom_fold_close(prom_fold *f);

// The following functions return false with a message if the budget refuses memory or was
// cancelled.

// Adds the values of a series to its group.
bool prom_fold_add(prom_fold *f, uint32_t group, const double *v, char err[PROM_ERROR_BYTES]);

// Adds the series of from, which has the same aggregate, groups and steps, and empties it.
bool prom_fold_move(prom_fold *from, prom_fold *to, char err[PROM_ERROR_BYTES]);

// Writes the values of a group, and whether there is any; if not, out may be unchanged.
bool prom_fold_result(prom_fold *f, uint32_t group, double *out, bool *any, char err[PROM_ERROR_BYTES]);

prom_budget *prom_fold_budget(const prom_fold *f);
