// Four doubles at once. A lane computes exactly what scalar code would: no fused or reordered
// arithmetic.
#pragma once

#include "window.h"

#define LANES 4

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t lane_bits __attribute__((vector_size(LANES * sizeof(int64_t))));

// Defines run_best, which is run_any. That is compiled twice, for any machine and for AVX2; the
// machine decides at run time.
#if defined(__x86_64__)
#define RUN_BEST(parameters, arguments) \
	__attribute__((target("avx2"), noinline)) static int run_wide parameters { return run_any arguments; } \
	PROM_INLINE int run_best parameters { return __builtin_cpu_supports("avx2") ? run_wide arguments : run_any arguments; }
#else
#define RUN_BEST(parameters, arguments) \
	PROM_INLINE int run_best parameters { return run_any arguments; }
#endif

// kahan_add for every lane. The operands are swapped where the addend is larger, which is
// Neumaier's other branch.
#define KAHAN_ADD_LANES(x, sum, c)                                                                                  \
	do {                                                                                                            \
		const lanes kx = (x), ks = (sum), kt = ks + kx;                                                             \
		const lane_bits kabs = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};                                        \
		const lane_bits kbig = (lanes)((lane_bits)ks & kabs) >= (lanes)((lane_bits)kx & kabs);                      \
		const lanes khigh = (lanes)(((lane_bits)ks & kbig) | ((lane_bits)kx & ~kbig));                              \
		const lanes klow = (lanes)(((lane_bits)kx & kbig) | ((lane_bits)ks & ~kbig));                               \
		const lane_bits kover = (lanes)((lane_bits)kt & kabs) > (lanes){DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX};        \
		(c) = (lanes)((lane_bits)((c) + ((khigh - kt) + klow)) & ~kover);                                           \
		(sum) = kt;                                                                                                 \
	} while (0)

// Values of at most this magnitude are tame: neither sums of them and of their squares overflow,
// nor those of their products with times.
#define TAME 1e140

// KAHAN_ADD_LANES of tame values, in half as many instructions. What rounding t = sum + x loses is
// a double, and both compute it: Neumaier by cases, Knuth without.
#define TAME_ADD_LANES(x, sum, c)                                                                                   \
	do {                                                                                                            \
		const lanes kx = (x), ks = (sum), kt = ks + kx, kb = kt - ks;                                               \
		(c) += (ks - (kt - kb)) + (kx - kb);                                                                        \
		(sum) = kt;                                                                                                 \
	} while (0)

// Adds to the sums of the lanes. tame: all values are.
#define ADD_LANES(tame, x, sum, c)     \
	do {                               \
		if (tame) {                    \
			TAME_ADD_LANES(x, sum, c); \
		} else {                       \
			KAHAN_ADD_LANES(x, sum, c); \
		}                              \
	} while (0)

// Whether all values are tame: NaN is not. Sets the largest magnitude among them. Magnitudes are in
// the order of their bits, and integers are compared side by side.
PROM_INLINE bool all_tame(const double *v, uint32_t n, double *largest) {
	int64_t most = 0;
	for (uint32_t i = 0; i < n; i++) {
		const int64_t bits = (int64_t)(prom_bits(v[i]) & INT64_MAX);
		most = bits > most ? bits : most;
	}
	*largest = prom_from_bits((uint64_t)most);
	return *largest <= TAME;
}

// Windows that are computed together once the batch is full.
typedef struct {
	window w[LANES];
	int n;
} batch;

// Lets lanes without a window repeat the first one, and empties the batch. Returns the number of
// samples of the shortest window.
PROM_INLINE uint32_t fill_batch(batch *b) {
	uint32_t common = UINT32_MAX;
	for (int l = 0; l < LANES; l++) {
		if (l >= b->n) {
			b->w[l] = b->w[0];
		}
		uint32_t n = b->w[l].hi - b->w[l].lo;
		common = n < common ? n : common;
	}
	b->n = 0;
	return common;
}
