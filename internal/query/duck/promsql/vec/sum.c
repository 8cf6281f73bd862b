// sum and avg: compensated sums as kahansum.Inc of Prometheus v0.315.0 (Neumaier's variant), for
// the steps of a list at once.
#include "planes.h"

#define MAX_DOUBLE 1.7976931348623157e308

VEC_INLINE bool infinite(double v) { return fabs(v) > MAX_DOUBLE; }

// Returns the compensation after f was added to sum, giving t. An infinite sum has no compensation.
VEC_INLINE double compensate(double f, double sum, double t, double c) {
	double large = (sum - t) + f, small = (f - t) + sum;
	double next = c + (fabs(sum) >= fabs(f) ? large : small);
	return infinite(t) ? 0.0 : next;
}

// sum: the sum, absent before the first value, and its compensation. A sum starts at -0, the
// neutral element of addition.
static void sum_add(double *p, size_t pitch, uint32_t n, const double *restrict v) {
	double *restrict s = p, *restrict c = p + pitch;
	for (uint32_t k = 0; k < n; k++) {
		double f = v[k], had = s[k];
		uint64_t gone = vec_gone(f);
		double sum = vec_choose(vec_gone(had), -0.0, had), t = sum + f;
		double next = compensate(f, sum, t, c[k]);
		s[k] = vec_choose(gone, had, t);
		c[k] = vec_choose(gone, c[k], next);
	}
}

static void sum_merge(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch) {
	sum_add(p, pitch, n, q);
	for (uint32_t k = 0; k < n; k++) {
		p[pitch + k] += infinite(p[k]) ? 0 : q[other_pitch + k];
	}
}

static bool sum_finish(const double *p, size_t pitch, uint32_t n, double *restrict out) {
	uint64_t any = 0;
	for (uint32_t k = 0; k < n; k++) {
		uint64_t gone = vec_gone(p[k]);
		out[k] = vec_choose(gone, p[k], p[k] + p[pitch + k]);
		any |= ~gone;
	}
	return any != 0;
}

const agg_planes agg_planes_sum = {.planes = 2, .initial = {PROM_ABSENT_BITS}, .add = sum_add, .merge = sum_merge, .finish = sum_finish};

// avg has four planes: the sum, or the mean once the sum would overflow; the compensation; the
// count; and 1 for the mean or 0 for the sum. The sum starts at -0.
static void avg_add_one(double *s, double *c, double *count, double *mean, double f) {
	if (prom_is_absent(f)) {
		return;
	}
	if (++*count == 1) {
		*s = f;
		return;
	}
	if (*mean == 0) {
		double t = *s + f;
		if (!infinite(t)) {
			*c = compensate(f, *s, t, *c);
			*s = t;
			return;
		}
		*mean = 1;
		*s /= *count - 1;
		*c /= *count - 1;
	}
	double share = (*count - 1) / *count, old = share * *s, part = f / *count, t = old + part;
	*c = compensate(part, old, t, share * *c);
	*s = t;
}

static void avg_add(double *p, size_t pitch, uint32_t n, const double *restrict v) {
	double *restrict s = p, *restrict c = p + pitch, *restrict count = p + 2 * pitch, *restrict mean = p + 3 * pitch;
	uint64_t special = 0;
	for (uint32_t k = 0; k < n; k++) {
		special |= vec_mask(infinite(s[k] + v[k])) | prom_bits(mean[k]);
	}
	for (uint32_t k = 0; special != 0 && k < n; k++) {
		avg_add_one(&s[k], &c[k], &count[k], &mean[k], v[k]);
	}
	if (special != 0) {
		return;
	}
	for (uint32_t k = 0; k < n; k++) {
		double f = v[k], t = s[k] + f;
		uint64_t gone = vec_gone(f);
		double next = compensate(f, s[k], t, c[k]);
		s[k] = vec_choose(gone, s[k], t);
		c[k] = vec_choose(gone, c[k], next);
		count[k] += vec_choose(gone, 0, 1);
	}
}

// The mean of a state and its compensation.
typedef struct {
	double mean, c, count;
} part;

static part part_of(double s, double c, double count, double mean) {
	return mean != 0 ? (part){s, c, count} : (part){s / count, c / count, count};
}

static void avg_merge(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch) {
	for (uint32_t k = 0; k < n; k++) {
		double *s = p + k, *c = s + pitch, *count = c + pitch, *mean = count + pitch;
		double qs = q[k], qc = q[other_pitch + k], qcount = q[2 * other_pitch + k], qmean = q[3 * other_pitch + k];
		if (qcount == 0) {
			continue;
		}
		double t = *s + qs;
		if (*mean == 0 && qmean == 0 && !infinite(t)) {
			*c = compensate(qs, *s, t, *c) + qc;
			*s = t;
			*count += qcount;
			continue;
		}
		part a = *count == 0 ? (part){-0.0, 0, 0} : part_of(*s, *c, *count, *mean), b = part_of(qs, qc, qcount, qmean);
		double all = a.count + b.count, x = a.mean * (a.count / all), y = b.mean * (b.count / all);
		*s = x + y;
		*c = compensate(y, x, *s, a.c * (a.count / all)) + (infinite(*s) ? 0 : b.c * (b.count / all));
		*count = all;
		*mean = 1;
	}
}

static bool avg_finish(const double *p, size_t pitch, uint32_t n, double *restrict out) {
	const double *s = p, *c = p + pitch, *count = p + 2 * pitch, *mean = p + 3 * pitch;
	uint64_t any = 0;
	for (uint32_t k = 0; k < n; k++) {
		uint64_t none = vec_mask(count[k] == 0);
		double direct = s[k] / count[k] + c[k] / count[k], running = s[k] + c[k];
		out[k] = vec_choose(none, prom_absent_value(), mean[k] != 0 ? running : direct);
		any |= ~none;
	}
	return any != 0;
}

const agg_planes agg_planes_avg = {.planes = 4, .initial = {UINT64_C(1) << 63}, .add = avg_add, .merge = avg_merge, .finish = avg_finish};
