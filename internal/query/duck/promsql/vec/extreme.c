// min, max, count and group.
#include "planes.h"

bool agg_planes_results(const double *p, size_t pitch, uint32_t n, double *restrict out) {
	(void)pitch;
	uint64_t any = 0;
	for (uint32_t k = 0; k < n; k++) {
		out[k] = p[k];
		any |= ~vec_gone(p[k]);
	}
	return any != 0;
}

// A value replaces NaN, and absent is a NaN.
#define EXTREME_ADD(name, beyond) \
	static void name(double *p, size_t pitch, uint32_t n, const double *restrict v) { \
		(void)pitch; \
		double *restrict m = p; \
		for (uint32_t k = 0; k < n; k++) { \
			uint64_t take = vec_mask((m[k] beyond v[k]) | (m[k] != m[k])) & ~vec_gone(v[k]); \
			m[k] = vec_choose(take, v[k], m[k]); \
		} \
	}

EXTREME_ADD(min_add, >)
EXTREME_ADD(max_add, <)

const agg_planes agg_planes_min = {.planes = 1, .initial = {PROM_ABSENT_BITS}, .add = min_add, .finish = agg_planes_results};
const agg_planes agg_planes_max = {.planes = 1, .initial = {PROM_ABSENT_BITS}, .add = max_add, .finish = agg_planes_results};

static void count_add(double *p, size_t pitch, uint32_t n, const double *restrict v) {
	(void)pitch;
	double *restrict count = p;
	for (uint32_t k = 0; k < n; k++) {
		count[k] += vec_choose(vec_gone(v[k]), 0, 1);
	}
}

static void count_merge(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch) {
	(void)pitch;
	(void)other_pitch;
	for (uint32_t k = 0; k < n; k++) {
		p[k] += q[k];
	}
}

static bool count_finish(const double *p, size_t pitch, uint32_t n, double *restrict out) {
	(void)pitch;
	uint64_t any = 0;
	for (uint32_t k = 0; k < n; k++) {
		uint64_t none = vec_mask(p[k] == 0);
		out[k] = vec_choose(none, prom_absent_value(), p[k]);
		any |= ~none;
	}
	return any != 0;
}

const agg_planes agg_planes_count = {.planes = 1, .add = count_add, .merge = count_merge, .finish = count_finish};

static void group_add(double *p, size_t pitch, uint32_t n, const double *restrict v) {
	(void)pitch;
	double *restrict one = p;
	for (uint32_t k = 0; k < n; k++) {
		one[k] = vec_choose(vec_gone(v[k]), one[k], 1);
	}
}

const agg_planes agg_planes_group = {.planes = 1, .initial = {PROM_ABSENT_BITS}, .add = group_add, .finish = agg_planes_results};
