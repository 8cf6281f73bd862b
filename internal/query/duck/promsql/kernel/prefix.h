// Sums of windows by the sums of what is before their ends, with the bits that adding up every
// window has.
//
// Neumaier's sum of a window is two doubles: the plain sum, and the sum of what each addition lost,
// which is known exactly. Their exact sum differs from the exact sum of the values only by what
// additions of losses lost, at most margin(). So where all numbers within the margin are rounded to
// the same double, that is the result; if they are not, which is rare, the window is added up.
#pragma once

#include "lanes.h"

typedef struct {
	double sum, lost;
} sum_before;

// The sums before each of n samples, and after the last. All values are tame.
typedef struct {
	const sum_before *at;
	uint32_t n;
	double magnitude; // at least the sum of the magnitudes of all values
} prefixes;

// After so many additions, the losses are added to the sum.
#define PREFIX_BLOCK 256

// Whether windows have so many samples in common that sums of prefixes save time.
static inline bool overlap_much(const prom_spec *p) { return p->n >= 16 && p->range / 8 >= p->step; }

PROM_INLINE void add_up(const double *v, uint32_t n, double largest, sum_before *to, prefixes *out) {
	double sum = 0, lost = 0;
	for (uint32_t from = 0, end; from < n; from = end) {
		end = n - from > PREFIX_BLOCK ? from + PREFIX_BLOCK : n;
		for (uint32_t i = from; i < end; i++) {
			to[i] = (sum_before){sum, lost};
			const double next = sum + v[i], back = next - sum;
			lost += (sum - (next - back)) + (v[i] - back);
			sum = next;
		}
		const double next = sum + lost, back = next - sum;
		lost = (sum - (next - back)) + (lost - back);
		sum = next;
	}
	to[n] = (sum_before){sum, lost};
	*out = (prefixes){to, n, n * largest};
}

// Bounds how far the exact sum of Neumaier's two doubles for n values, and that of the doubles that
// sum_between returns, are apart. With u = 2^-53 and the magnitude M, an addition of a value loses
// at most u*M, n of them n*u*M, and each of n additions of losses u times as much: n*n*u*u*M. In a
// prefix, at most PREFIX_BLOCK losses are together: n*PREFIX_BLOCK*u*u*M for its n additions. The
// rest, and the factor, are for the few operations that combine them.
PROM_INLINE double margin(const prefixes *x, uint32_t n) {
	const double u = 0x1p-53;
	return ((double)n * n + 4.0 * PREFIX_BLOCK * x->n + 16.0 * PREFIX_BLOCK) * u * u * x->magnitude;
}

// The sum of samples lo..hi-1 as two doubles of which the second is small.
PROM_INLINE sum_before sum_between(const prefixes *x, uint32_t lo, uint32_t hi) {
	const sum_before a = x->at[lo], b = x->at[hi];
	double sum = b.sum - a.sum, back = sum - b.sum;
	return (sum_before){sum, ((b.sum - (sum - back)) - (a.sum + back)) + (b.lost - a.lost)};
}

// Below this magnitude, the margin is not a normal number.
#define LEAST_MAGNITUDE 1e-200

// The compensated sum of samples lo..hi-1, added up from the first. Returns false if it is
// uncertain.
PROM_INLINE bool certain_sum(const prefixes *x, uint32_t lo, uint32_t hi, double *out) {
	const sum_before s = sum_between(x, lo, hi);
	const double m = margin(x, hi - lo);
	*out = s.sum + (s.lost - m);
	return x->magnitude > LEAST_MAGNITUDE && *out == s.sum + (s.lost + m);
}

// The same for their average: sum is their plain sum.
PROM_INLINE bool certain_average(const prefixes *x, uint32_t lo, uint32_t hi, double sum, double *out) {
	const sum_before s = sum_between(x, lo, hi);
	const double m = margin(x, hi - lo), n = hi - lo;
	double difference = s.sum - sum, back = difference - s.sum;
	double lost = difference + (((s.sum - (difference - back)) - (sum + back)) + s.lost);
	*out = sum / n + (lost - m) / n;
	return x->magnitude > LEAST_MAGNITUDE && *out == sum / n + (lost + m) / n;
}
