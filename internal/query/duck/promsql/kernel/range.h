// Range functions over one series, with the same bits as promql/functions.go of Prometheus v0.315.0
// for floats without start timestamps. Independent of DuckDB.
#pragma once

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

// Whether fn reads stale markers. All other functions need series without them.
bool prom_range_sees_stale(int fn);

// The quantile q, 0..1, of a window's n values in the order of time. Upstream's sort treats -0 and
// 0 as equal and is not stable: if both are present and the result is zero, its sign depends on
// that sort, so Go's sort must decide. If the pointer is NULL, -0 is below 0.
extern double (*prom_sorted_quantile)(double q, const double *v, uint32_t n);
