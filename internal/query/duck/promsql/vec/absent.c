// absent: 1 where no series has a value. scalar: the value where exactly one series has one, else
// NaN. Without any series the result is a list of one element, which stands for every step.
#include "planes.h"

static const double one = 1, nan_value = NAN;

// absent: 1 until a value comes.
static void absent_add(double *p, size_t pitch, uint32_t n, const double *restrict v) {
	(void)pitch;
	double *restrict out = p;
	for (uint32_t k = 0; k < n; k++) {
		out[k] = vec_choose(vec_gone(v[k]), out[k], prom_absent_value());
	}
}

static void absent_merge(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch) {
	(void)pitch;
	(void)other_pitch;
	for (uint32_t k = 0; k < n; k++) {
		p[k] = vec_choose(vec_gone(q[k]), q[k], p[k]);
	}
}

const agg_planes agg_planes_absent = {.planes = 1,
                                     .initial = {UINT64_C(0x3ff0000000000000)}, // 1
                                     .add = absent_add,
                                     .merge = absent_merge,
                                     .finish = agg_planes_results,
                                     .empty = &one};

// scalar: the last value, and how many there were.
static void scalar_add(double *p, size_t pitch, uint32_t n, const double *restrict v) {
	double *restrict value = p, *restrict count = p + pitch;
	for (uint32_t k = 0; k < n; k++) {
		uint64_t gone = vec_gone(v[k]);
		value[k] = vec_choose(gone, value[k], v[k]);
		count[k] += vec_choose(gone, 0, 1);
	}
}

static void scalar_merge(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch) {
	for (uint32_t k = 0; k < n; k++) {
		p[k] = q[other_pitch + k] != 0 ? q[k] : p[k];
		p[pitch + k] += q[other_pitch + k];
	}
}

static bool scalar_finish(const double *p, size_t pitch, uint32_t n, double *restrict out) {
	for (uint32_t k = 0; k < n; k++) {
		out[k] = vec_choose(vec_mask(p[pitch + k] == 1), p[k], nan_value);
	}
	return true;
}

const agg_planes agg_planes_scalar = {
    .planes = 2, .add = scalar_add, .merge = scalar_merge, .finish = scalar_finish, .empty = &nan_value};
