// Values at the steps of a grid, present or absent.
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

// Products must not be fused with sums: the bits would differ from Go's. GCC does not fuse under
// -std=c11; Clang needs the pragma.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

// Bits of a double that say "no sample at this step". They are Prometheus's stale marker, which no
// calculation yields.
#define PROM_ABSENT_BITS UINT64_C(0x7ff0000000000002)

static inline uint64_t prom_bits(double v) {
	uint64_t b;
	memcpy(&b, &v, sizeof b);
	return b;
}

static inline double prom_from_bits(uint64_t b) {
	double v;
	memcpy(&v, &b, sizeof v);
	return v;
}

static inline bool prom_is_absent(double v) { return prom_bits(v) == PROM_ABSENT_BITS; }

static inline double prom_absent_value(void) { return prom_from_bits(PROM_ABSENT_BITS); }
