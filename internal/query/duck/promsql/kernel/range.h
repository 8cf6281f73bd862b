// Range functions over one series, with the same bits as promql/functions.go of Prometheus v0.315.0
// for floats without start timestamps. Independent of DuckDB.
#pragma once

#include "scratch.h"
#include "spec.h"
#include "value.h"
#include "functions.h"

#define FUNCTION(id, name, kernel, keys) PROM_##id,
typedef enum { PROM_RANGE_LIST(FUNCTION) PROM_RANGE_FUNCTIONS } prom_range_fn; // the last one is their number
#undef FUNCTION

// The function of a name of len bytes, -1 if there is none.
int prom_range_find(const char *name, size_t len);

// The spec keys that a function needs: the grid, range, and its parameters.
uint32_t prom_range_keys(int fn);

// Evaluates fn over one series: n samples, ts in ms strictly ascending, at the spec->n steps of the
// grid. out has spec->n elements; absent ones become PROM_ABSENT_BITS. Stale markers among v are
// left out of ranges. Returns 1 if any step has a value, 0 if none has, -1 if scratch memory was
// refused by spec->budget.
int prom_range_eval(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out);

// Whether fn reads stale markers. All other functions need series without them.
bool prom_range_sees_stale(int fn);

uint32_t prom_count_stale(const double *v, uint32_t n);

// Copies the samples that are no stale markers, of which there are kept, into scratch memory, and
// lets *ts and *v point to them. Returns false if the budget refuses it.
bool prom_drop_stale(prom_scratch *scratch, const int64_t **ts, const double **v, uint32_t n, uint32_t kept);

// As prom_range_eval, over samples that have no stale markers unless fn sees them.
int prom_range_run(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out, prom_scratch *scratch);

// The quantile q, 0..1, of a window's n values in the order of time. Upstream's sort treats -0 and
// 0 as equal and is not stable: if both are present and the result is zero, its sign depends on
// that sort, so Go's sort must decide. If the pointer is NULL, -0 is below 0.
extern double (*prom_sorted_quantile)(double q, const double *v, uint32_t n);

// Sorts n values as Go's sort.Sort does with upstream's order by value, in which -0 equals 0.
void promGoSort(double *v, size_t n);
