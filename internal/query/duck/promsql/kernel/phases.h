// Plain sums of many windows at once, each added up from its first sample: window l of a group
// begins l strides after the first one.
#pragma once

#include "lanes.h"

#define GROUP 16 // windows

// The most samples between two windows of a group.
#define LONGEST_STRIDE 64

// The values of samples i, i + stride, i + 2*stride, ... are adjacent, and so are those that the
// windows of a group need at once.
typedef struct {
	uint32_t stride, length; // length of a phase
	double *at;              // phase after phase
} phases;

// The number of values of phases of n samples.
static inline size_t phases_room(uint32_t n) { return (size_t)n + (size_t)LONGEST_STRIDE * (GROUP + 1); }

// The stride of windows over samples whose usual distance is that in the middle; 0: they have none.
static inline uint32_t stride_of(const series *s, const prom_spec *p) {
	if (s->n < 2) {
		return 0;
	}
	const int64_t interval = s->ts[s->n / 2] - s->ts[s->n / 2 - 1];
	const int64_t stride = (p->step + interval / 2) / interval;
	return stride <= LONGEST_STRIDE ? (uint32_t)stride : 0;
}

PROM_INLINE void fill_phases(const double *v, uint32_t n, phases *x) {
	x->length = n / x->stride + 1 + GROUP;
	memset(x->at, 0, (size_t)x->stride * x->length * sizeof *x->at);
	for (uint32_t i = 0, j = 0; i < n; j++) {
		for (uint32_t r = 0; r < x->stride && i < n; r++, i++) {
			x->at[(size_t)r * x->length + j] = v[i];
		}
	}
}

// Adds the values at v to a vector.
#define ADD_AT(v, sum)                   \
	do {                                 \
		lanes kx;                        \
		memcpy(&kx, (v), sizeof kx);     \
		(sum) += kx;                     \
	} while (0)

// Adds up n samples from lo on, and as many for each other window of the group.
PROM_INLINE void plain_sums(const phases *x, uint32_t lo, uint32_t n, double sums[GROUP]) {
	lanes a = {0}, b = {0}, c = {0}, d = {0};
	uint32_t r = lo % x->stride, j = lo / x->stride;
	for (uint32_t i = 0; i < n; r = 0, j++) {
		const double *at = x->at + (size_t)r * x->length + j;
		for (; r < x->stride && i < n; r++, i++, at += x->length) {
			ADD_AT(at, a);
			ADD_AT(at + LANES, b);
			ADD_AT(at + 2 * LANES, c);
			ADD_AT(at + 3 * LANES, d);
		}
	}
	memcpy(sums, &a, sizeof a);
	memcpy(sums + LANES, &b, sizeof b);
	memcpy(sums + 2 * LANES, &c, sizeof c);
	memcpy(sums + 3 * LANES, &d, sizeof d);
}
