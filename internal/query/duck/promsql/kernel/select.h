// Order statistics. Doubles other than NaN are compared as integers of the same order; -0 is below
// 0.
#pragma once

#include <stdlib.h>

#include "window.h"

PROM_INLINE int64_t key_of(double v) {
	int64_t b = (int64_t)prom_bits(v);
	return b < 0 ? b ^ INT64_MAX : b;
}

PROM_INLINE double value_of(int64_t key) { return prom_from_bits((uint64_t)(key < 0 ? key ^ INT64_MAX : key)); }

// The first of n ascending keys that is not below x; n if there is none.
PROM_INLINE uint32_t lower_bound(const int64_t *a, uint32_t n, int64_t x) {
	const int64_t *at = a;
	while (n > 1) {
		uint32_t half = n / 2;
		at += at[half - 1] < x ? half : 0;
		n -= half;
	}
	return (uint32_t)(at - a) + (n == 1 && *at < x);
}

static inline void swap_keys(int64_t *a, int64_t *b) {
	int64_t x = *a;
	*a = *b;
	*b = x;
}

static inline void insertion_sort(int64_t *a, uint32_t n) {
	for (uint32_t i = 1; i < n; i++) {
		int64_t x = a[i];
		uint32_t j = i;
		for (; j > 0 && a[j - 1] > x; j--) {
			a[j] = a[j - 1];
		}
		a[j] = x;
	}
}

static inline int compare_keys(const void *a, const void *b) {
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static inline void sort_keys(int64_t *a, uint32_t n) {
	if (n <= 32) {
		insertion_sort(a, n);
	} else {
		qsort(a, n, sizeof *a, compare_keys);
	}
}

static inline int64_t median_of_three(int64_t a, int64_t b, int64_t c) {
	int64_t low = a < b ? a : b, high = a < b ? b : a;
	return c < low ? low : c > high ? high : c;
}

// Moves keys not above a pivot to the left and keys not below it to the right, and returns where
// the right begins: 1..n-1. n > 2.
static inline uint32_t partition(int64_t *a, uint32_t n) {
	int64_t pivot = median_of_three(a[0], a[n / 2], a[n - 1]);
	uint32_t i = 0, j = n - 1;
	for (;;) {
		while (a[i] < pivot) {
			i++;
		}
		while (a[j] > pivot) {
			j--;
		}
		if (i >= j) {
			return i;
		}
		swap_keys(&a[i++], &a[j--]);
	}
}

// Arranges the keys so that a[k] has its sorted value, no key before it is larger and none after it
// is smaller. After 64 partitions the rest is sorted, which bounds the worst case.
static inline void select_kth(int64_t *a, uint32_t n, uint32_t k) {
	for (int tries = 0; n > 16 && tries < 64; tries++) {
		uint32_t right = partition(a, n);
		if (k < right) {
			n = right;
		} else {
			a += right;
			n -= right;
			k -= right;
		}
	}
	sort_keys(a, n);
}

// Values as upstream sorts them: first the NaNs, then the keys of the others.
typedef struct {
	int64_t *keys;
	uint32_t nans, n;
	bool sorted; // the keys are
} ordered;

static inline void load_values(ordered *o, const double *v, uint32_t n) {
	o->nans = o->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		o->keys[o->n] = key_of(v[i]);
		o->n += v[i] == v[i];
		o->nans += v[i] != v[i];
	}
}

// The mean of the values at the two ranks that q lies between, weighted. q is 0..1.
static inline double interpolate(ordered *o, double q) {
	uint32_t n = o->nans + o->n;
	double rank = q * (double)(n - 1) + 0.0; // no -0
	uint32_t lower = (uint32_t)rank, upper = lower + 1 < n ? lower + 1 : n - 1;
	double weight = rank - (double)lower;
	if (lower < o->nans) {
		return NAN;
	}
	lower -= o->nans;
	upper -= o->nans;
	int64_t a, b;
	if (o->sorted) {
		a = o->keys[lower];
		b = o->keys[upper];
	} else {
		select_kth(o->keys, o->n, lower);
		a = b = o->keys[lower];
		if (upper > lower) {
			b = o->keys[upper];
			for (uint32_t i = upper + 1; i < o->n; i++) {
				b = o->keys[i] < b ? o->keys[i] : b;
			}
		}
	}
	return value_of(a) * (1 - weight) + value_of(b) * weight;
}

static inline bool has_key(const ordered *o, int64_t x) {
	if (o->sorted) {
		uint32_t at = lower_bound(o->keys, o->n, x);
		return at < o->n && o->keys[at] == x;
	}
	for (uint32_t i = 0; i < o->n; i++) {
		if (o->keys[i] == x) {
			return true;
		}
	}
	return false;
}

// The quantile phi of n values v, at least one, which o holds: promql's quantile of v0.315.0.
static inline double quantile_of(ordered *o, double phi, const double *v, uint32_t n) {
	if (phi != phi) {
		return NAN;
	}
	if (phi < 0 || phi > 1) {
		return phi < 0 ? -INFINITY : INFINITY;
	}
	double q = interpolate(o, phi);
	if (q == 0 && prom_sorted_quantile != NULL && has_key(o, key_of(-0.0)) && has_key(o, key_of(0.0))) {
		return prom_sorted_quantile(phi, v, n);
	}
	return q;
}
