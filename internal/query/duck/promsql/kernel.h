// Range functions over one series, bit for bit as promql/functions.go of Prometheus v0.315.0 has them for floats without start timestamps.
// No DuckDB in here.
#pragma once

#include "promsql.h"

typedef enum {
	PROM_INSTANT, // the latest sample of the window; absent where that is a stale marker
	PROM_TIMESTAMP,
	PROM_RATE,
	PROM_INCREASE,
	PROM_DELTA,
	PROM_IRATE,
	PROM_IDELTA,
	PROM_DERIV,
	PROM_PREDICT_LINEAR,
	PROM_CHANGES,
	PROM_RESETS,
	PROM_AVG_OVER_TIME,
	PROM_MIN_OVER_TIME,
	PROM_MAX_OVER_TIME,
	PROM_SUM_OVER_TIME,
	PROM_COUNT_OVER_TIME,
	PROM_LAST_OVER_TIME,
	PROM_FIRST_OVER_TIME,
	PROM_PRESENT_OVER_TIME,
	PROM_STDDEV_OVER_TIME,
	PROM_STDVAR_OVER_TIME,
	PROM_MAD_OVER_TIME,
	PROM_QUANTILE_OVER_TIME,
	PROM_TS_OF_MIN_OVER_TIME,
	PROM_TS_OF_MAX_OVER_TIME,
	PROM_TS_OF_FIRST_OVER_TIME,
	PROM_TS_OF_LAST_OVER_TIME,
	PROM_DOUBLE_EXPONENTIAL_SMOOTHING,
	PROM_RANGE_FUNCTIONS // how many there are
} prom_range_fn;

// "rate" for PROM_RATE and so on: the SQL function is prom_ and this. NULL beyond the last.
const char *prom_range_name(int fn);

// The function of a name of len bytes, -1 if there is none.
int prom_range_find(const char *name, size_t len);

// The spec keys that a function needs: the grid, range, and its parameters.
uint32_t prom_range_keys(int fn);

// Evaluates fn over one series: n samples, ts in ms strictly ascending, at the spec->n steps of the grid. out has spec->n elements; absent
// ones become PROM_ABSENT_BITS. Stale markers among v are left out of ranges. Returns 1 if any step has a value, 0 if none has, -1 if
// scratch memory was refused by spec->budget.
int prom_range_eval(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out);

// Scratch memory that one series leaves to the next: zero it but for the budget, use it for any number of series in one thread, free it.
typedef struct {
	prom_budget *budget;
	void *mem;
	size_t bytes;
} prom_scratch;

// n bytes that stay until the next call with the same scratch. NULL: refused.
void *prom_scratch_take(prom_scratch *s, size_t n);

void prom_scratch_free(prom_scratch *s);

// Whether fn looks at stale markers. All other functions want series without.
bool prom_range_sees_stale(int fn);

// As prom_range_eval, over samples that have no stale markers unless fn sees them.
int prom_range_run(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out, prom_scratch *scratch);

// The quantile q, 0..1, of a window's n values in the order of time. Upstream's sort takes -0 and 0 for equal and is not stable: where
// both are there and the result is zero, its sign is that of whichever the sort put there, and only the same sort knows. NULL: the result
// is as if -0 were below 0.
extern double (*prom_sorted_quantile)(double q, const double *v, uint32_t n);
