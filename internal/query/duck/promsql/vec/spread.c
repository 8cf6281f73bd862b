// stddev and stdvar: Welford's update, as upstream's aggregation has it, and Chan's merge of two
// states. The planes are the mean, the sum of squared distances from it, and the count.
#include "planes.h"

// The first value f sets the mean to f and the distance to f*(f-f): 0, or NaN for infinities and
// NaN, as upstream does.
static void add(double *p, size_t pitch, uint32_t n, const double *restrict v) {
	double *restrict mean = p, *restrict square = p + pitch, *restrict count = p + 2 * pitch;
	for (uint32_t k = 0; k < n; k++) {
		double f = v[k], more = count[k] + 1, delta = f - mean[k];
		double m = mean[k] + delta / more, s = square[k] + delta * (f - m);
		uint64_t gone = vec_gone(f);
		mean[k] = vec_choose(gone, mean[k], m);
		square[k] = vec_choose(gone, square[k], s);
		count[k] = vec_choose(gone, count[k], more);
	}
}

static void merge(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch) {
	for (uint32_t k = 0; k < n; k++) {
		double a = p[2 * pitch + k], b = q[2 * other_pitch + k];
		if (b == 0) {
			continue;
		}
		double delta = q[k] - p[k], share = b / (a + b);
		p[k] = a == 0 ? q[k] : p[k] + delta * share;
		p[pitch + k] = a == 0 ? q[other_pitch + k] : p[pitch + k] + q[other_pitch + k] + delta * delta * a * share;
		p[2 * pitch + k] = a + b;
	}
}

static bool stdvar(const double *p, size_t pitch, uint32_t n, double *restrict out) {
	uint64_t any = 0;
	for (uint32_t k = 0; k < n; k++) {
		uint64_t none = vec_mask(p[2 * pitch + k] == 0);
		out[k] = vec_choose(none, prom_absent_value(), p[pitch + k] / p[2 * pitch + k]);
		any |= ~none;
	}
	return any != 0;
}

static bool stddev(const double *p, size_t pitch, uint32_t n, double *restrict out) {
	bool any = stdvar(p, pitch, n, out);
	for (uint32_t k = 0; k < n; k++) {
		out[k] = vec_choose(vec_gone(out[k]), out[k], sqrt(out[k]));
	}
	return any;
}

const agg_planes agg_planes_stddev = {.planes = 3, .add = add, .merge = merge, .finish = stddev};
const agg_planes agg_planes_stdvar = {.planes = 3, .add = add, .merge = merge, .finish = stdvar};
