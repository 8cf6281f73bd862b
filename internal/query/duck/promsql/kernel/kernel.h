// One range function with its spec and the memory that is reused from series to series. Independent
// of DuckDB.
#pragma once

#include "range.h"

// For one thread at a time.
typedef struct {
	int fn;
	prom_spec spec;
	prom_scratch series, scratch, windows;
	int64_t known; // how many windows of the last series' times are known, -1: they are not
	bool sparse;   // some steps have no window, or one of a single sample
} prom_kernel;

// A kernel without memory. The caller keeps the spec's budget alive, and ends with
// prom_kernel_clear.
prom_kernel prom_kernel_of(int fn, const prom_spec *spec);
void prom_kernel_clear(prom_kernel *k);

// Opens the kernel of fn with a spec text, whose budget it references until it is closed. NULL with
// a message: the text is wrong.
prom_kernel *prom_kernel_open(int fn, const char *text, size_t len, char err[PROM_ERROR_BYTES]);
void prom_kernel_close(prom_kernel *k);

// What a caller knows of a series.
enum {
	PROM_SAME_TIMES = 1, // its times are those of the last one
	PROM_NO_STALE = 2,   // it has no stale markers
};

// What prom_kernel_eval returns: whether any step has a value, or why there is no result.
enum { PROM_KERNEL_NONE, PROM_KERNEL_PRESENT, PROM_KERNEL_REFUSED, PROM_KERNEL_CANCELLED };

// Evaluates one series: n samples, ts in ms strictly ascending, at the steps of the spec's grid.
// out has an element for each; absent ones become PROM_ABSENT_BITS. Stale markers among v are left
// out of ranges. facts is an or of the above. n may be 0.
int prom_kernel_eval(prom_kernel *k, const int64_t *ts, const double *v, uint32_t n, int facts, double *out);
