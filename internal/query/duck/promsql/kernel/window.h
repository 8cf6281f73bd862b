// Shared by the kernels: one series, its sliding windows, and compensated sums.
#pragma once

#include <float.h>

#include "range.h"

#define PROM_INLINE static inline __attribute__((always_inline))

// Samples lo..hi-1, at least one, are the window of step k. The next windows, as many as are alike,
// are those of the next steps, and each has as many samples as this one, at the same distances from
// start and end, and begins as many samples after the window before.
typedef struct {
	uint32_t k, lo, hi, alike;
} known_window;

// Samples of one series: ts in ms, strictly ascending. For all functions but PROM_INSTANT and
// PROM_TIMESTAMP v has no stale markers.
typedef struct {
	const int64_t *ts;
	const double *v;
	uint32_t n;
	const known_window *windows; // all that have samples, ascending; NULL: they are yet to be found
	uint32_t known;              // how many they are
} series;

// Samples lo..hi-1 are the window of step k, whose time is t. Neither end ever moves back.
typedef struct {
	int64_t k, t;
	uint32_t lo, hi;
	uint32_t lo_moved, hi_moved; // with the last step
	uint32_t at;                 // how many known windows were gone through
	bool like_last;              // it is known to be alike with the window before
} window;

// The window before the first one.
PROM_INLINE window before_first(const prom_spec *p) { return (window){.k = -1, .t = p->start - p->step}; }

// Returns the first sample from i on that is after t; samples before i are not. Regular samples
// move by as much as in the last step, which is tried first.
PROM_INLINE uint32_t first_after(const series *s, uint32_t i, int64_t t, uint32_t *moved) {
	const int64_t *ts = s->ts;
	if (*moved < s->n - i && ts[i + *moved] > t && (*moved == 0 || ts[i + *moved - 1] <= t)) {
		return i + *moved;
	}
	uint32_t from = i;
	while (i < s->n && ts[i] <= t) {
		i++;
	}
	*moved = i - from;
	return i;
}

// next_window where the windows are known.
PROM_INLINE bool next_known_window(const series *s, const prom_spec *p, uint32_t min, double *out, window *w) {
	int64_t k = w->k + 1;
	uint32_t at = w->at;
	while (at < s->known && s->windows[at].hi - s->windows[at].lo < min) {
		at++;
	}
	const int64_t next = at < s->known ? s->windows[at].k : p->n;
	for (; k < next; k++) {
		out[k] = prom_absent_value();
	}
	if (at == s->known) {
		return false;
	}
	*w = (window){.k = next, .t = p->start + next * p->step, .lo = s->windows[at].lo, .hi = s->windows[at].hi, .at = at + 1};
	return true;
}

// Moves w to the next step whose window has at least min samples, and writes absent values to the
// steps between. Returns false if there is no such step.
PROM_INLINE bool next_window(const series *s, const prom_spec *p, uint32_t min, double *out, window *w) {
	if (s->windows != NULL) {
		return next_known_window(s, p, min, out, w);
	}
	window x = *w;
	while (++x.k < p->n) {
		x.t += p->step;
		x.hi = first_after(s, x.hi, x.t, &x.hi_moved);
		x.lo = first_after(s, x.lo, x.t - p->range, &x.lo_moved);
		if (x.hi >= x.lo + min) {
			*w = x;
			return true;
		}
		out[x.k] = prom_absent_value();
	}
	return false;
}

// each_window where the windows are known.
PROM_INLINE int each_known_window(const series *s, const prom_spec *p, double *out, uint32_t min,
                                  double (*f)(const series *s, const prom_spec *p, window w, void *state), void *state) {
	int any = 0;
	int64_t k = 0;
	for (const known_window *x = s->windows, *end = x + s->known; x < end; x++) {
		if (x->hi - x->lo < min) {
			continue;
		}
		for (; k < x->k; k++) {
			out[k] = prom_absent_value();
		}
		const window w = {.k = k, .t = p->start + k * p->step, .lo = x->lo, .hi = x->hi, .like_last = x > s->windows && x[-1].alike > 0};
		out[k++] = f(s, p, w, state);
		any = 1;
	}
	for (; k < p->n; k++) {
		out[k] = prom_absent_value();
	}
	return any;
}

// Writes the result of f for every window that has at least min samples. Returns whether there is
// one.
PROM_INLINE int each_window(const series *s, const prom_spec *p, double *out, uint32_t min,
                            double (*f)(const series *s, const prom_spec *p, window w, void *state), void *state) {
	if (s->windows != NULL) {
		return each_known_window(s, p, out, min, f, state);
	}
	int any = 0;
	for (window w = before_first(p); next_window(s, p, min, out, &w); any = 1) {
		out[w.k] = f(s, p, w, state);
	}
	return any;
}

// As prom_range_run.
int prom_range_series(int fn, const series *s, const prom_spec *spec, double *out, prom_scratch *scratch);

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

// The kernels. Each returns as prom_range_eval does.
int prom_range_pick(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_flips(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_rate(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_extreme(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_sum(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_trend(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
int prom_range_order(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
