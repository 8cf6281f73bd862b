// Shared by the kernels: one series, its sliding windows, and compensated sums.
#pragma once

#include <float.h>

#include "kernel.h"

#define PROM_INLINE static inline __attribute__((always_inline))

// Samples lo..hi-1, at least one, are the window of step k. The next windows, as many as are alike,
// are those of the next steps, and each has as many samples as this one, at the same distances from
// start and end, and begins as many samples after the window before.
typedef struct {
	uint32_t k, lo, hi, alike;
} window;

// Samples of one series: ts in ms, strictly ascending. For all functions but PROM_INSTANT and
// PROM_TIMESTAMP v has no stale markers.
typedef struct {
	const int64_t *ts;
	const double *v;
	uint32_t n;
	const window *windows; // all that have samples, ascending
	uint32_t count;        // of windows
} series;

// The time of a window's step.
PROM_INLINE int64_t time_of(const prom_spec *p, window w) { return p->start + w.k * p->step; }

// Writes the result of f for every window that has at least min samples. Returns whether there is
// one.
PROM_INLINE int each_window(const series *s, const prom_spec *p, double *out, uint32_t min,
                            double (*f)(const series *s, const prom_spec *p, window w, void *state), void *state) {
	int any = 0;
	for (const window *w = s->windows, *end = w + s->count; w < end; w++) {
		if (w->hi - w->lo >= min) {
			out[w->k] = f(s, p, *w, state);
			any = 1;
		}
	}
	return any;
}

// Adds x to the sum *sum with the compensation *c, after Neumaier; a sum that overflows loses its
// compensation.
PROM_INLINE void kahan_add(double x, double *sum, double *c) {
	double t = *sum + x;
	if (t > DBL_MAX || t < -DBL_MAX) {
		*c = 0;
	} else if (fabs(*sum) >= fabs(x)) {
		*c += (*sum - t) + x;
	} else {
		*c += (x - t) + *sum;
	}
	*sum = t;
}

// The kernels. Each writes the values of the steps that have one, and returns whether there are
// any, or -1 if scratch memory was refused.
int prom_range_pick(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_flips(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_rate(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_extreme(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_sum(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_trend(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_order(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
