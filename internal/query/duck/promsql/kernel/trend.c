// deriv and predict_linear, which fit a line to a window by least squares, and double exponential
// smoothing.
#include "lanes.h"

typedef struct {
	double slope, intercept;
} line;

// Fits a line to samples lo..hi-1 with its intercept at the time at. The lanes hold the sums of x,
// y, x*y and x*x.
PROM_INLINE line fit(const series *s, uint32_t lo, uint32_t hi, int64_t at) {
	const double first = s->v[lo];
	lanes sum = {0}, c = {0};
	bool constant = true;
	for (uint32_t i = lo; i < hi; i++) {
		double x = (double)(s->ts[i] - at) / 1e3, y = s->v[i];
		constant = constant && (i == lo || !(y != first));
		const lanes add = {x, y, x * y, x * x};
		KAHAN_ADD_LANES(add, sum, c);
	}
	if (constant) {
		return isinf(first) ? (line){NAN, NAN} : (line){0, first};
	}
	sum += c;
	double n = hi - lo, sum_x = sum[0], sum_y = sum[1];
	double cov_xy = sum[2] - sum_x * sum_y / n;
	double var_x = sum[3] - sum_x * sum_x / n;
	double slope = cov_xy / var_x;
	return (line){slope, sum_y / n - slope * sum_x / n};
}

PROM_INLINE double deriv(const series *s, const prom_spec *p, window w, void *state) {
	(void)p, (void)state;
	return fit(s, w.lo, w.hi, s->ts[w.lo]).slope;
}

// The intercept is at the evaluation time, which offset and @ do not move.
PROM_INLINE double predict_linear(const series *s, const prom_spec *p, window w, void *state) {
	(void)state;
	line l = fit(s, w.lo, w.hi, w.t + p->shift);
	return l.slope * p->dur + l.intercept;
}

PROM_INLINE double smoothing(const series *s, const prom_spec *p, window w, void *state) {
	(void)state;
	const double *v = s->v + w.lo;
	double s0 = 0, s1 = v[0], b = v[1] - v[0];
	for (uint32_t i = 1; i < w.hi - w.lo; i++) {
		double x = p->sf * v[i];
		if (i > 1) {
			double trend = p->tf * (s1 - s0);
			b = trend + (1 - p->tf) * b;
		}
		double y = (1 - p->sf) * (s1 + b);
		s0 = s1;
		s1 = x + y;
	}
	return s1;
}

PROM_INLINE int run_any(int fn, const series *s, const prom_spec *p, double *out) {
	if (fn == PROM_DERIV) {
		return each_window(s, p, out, 2, deriv, NULL);
	}
	return each_window(s, p, out, 2, predict_linear, NULL);
}

#ifdef PROM_HAS_WIDE
PROM_WIDE static int run_wide(int fn, const series *s, const prom_spec *p, double *out) { return run_any(fn, s, p, out); }
#endif

int prom_range_trend(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	(void)scratch;
	if (fn == PROM_DOUBLE_EXPONENTIAL_SMOOTHING) {
		return each_window(s, p, out, 2, smoothing, NULL);
	}
#ifdef PROM_HAS_WIDE
	if (prom_wide()) {
		return run_wide(fn, s, p, out);
	}
#endif
	return run_any(fn, s, p, out);
}
