// Order statistics. Doubles other than NaN are compared as integers of the same order; -0 is below
// 0.
#pragma once

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

static inline void sift(int64_t *a, uint32_t root, uint32_t n) {
	for (uint32_t child; (child = 2 * root + 1) < n; root = child) {
		child += child + 1 < n && a[child + 1] > a[child];
		if (a[root] >= a[child]) {
			return;
		}
		swap_keys(&a[root], &a[child]);
	}
}

// Sorts in O(n log n) steps in the worst case.
static inline void sort_keys(int64_t *a, uint32_t n) {
	if (n <= 32) {
		insertion_sort(a, n);
		return;
	}
	for (uint32_t i = n / 2; i-- > 0;) {
		sift(a, i, n);
	}
	for (uint32_t i = n; i-- > 1;) {
		swap_keys(&a[0], &a[i]);
		sift(a, 0, i);
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
