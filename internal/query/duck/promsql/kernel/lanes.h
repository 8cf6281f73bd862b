// Four doubles at once. A lane computes exactly what scalar code would: no fused or reordered
// arithmetic.
#pragma once

#include "window.h"

#define LANES 4

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t lane_bits __attribute__((vector_size(LANES * sizeof(int64_t))));

// For functions that are compiled twice, for any machine and for AVX2; the machine decides at run
// time.
#if defined(__x86_64__)
#define PROM_HAS_WIDE 1
#define PROM_WIDE __attribute__((target("avx2"), noinline))
static inline bool prom_wide(void) { return __builtin_cpu_supports("avx2"); }
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
