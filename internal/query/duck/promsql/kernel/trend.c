// deriv and predict_linear, which fit a line to a window by least squares, and double exponential
// smoothing. The sums are compensated and depend on the order of additions, so every window is
// summed from scratch, several windows at once, one per lane. What depends on the times alone is
// computed once for all windows whose samples are equally far from each other and from the
// intercept.
#include "prefix.h"

typedef struct {
	double slope, intercept;
} line;

// Fits a line to samples lo..hi-1 with its intercept at the time at. The lanes hold the sums of x,
// y, x*y and x*x.
PROM_INLINE line fit(const series *s, uint32_t lo, uint32_t hi, int64_t at, bool tame) {
	const double first = s->v[lo];
	lanes sum = {0}, c = {0};
	bool constant = true;
	for (uint32_t i = lo; i < hi; i++) {
		double x = (double)(s->ts[i] - at) / 1e3, y = s->v[i];
		constant = constant && (i == lo || !(y != first));
		const lanes add = {x, y, x * y, x * x};
		ADD_LANES(tame, add, sum, c);
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

// The result of a window's line.
PROM_INLINE double of_line(int fn, const prom_spec *p, line l) {
	return fn == PROM_DERIV ? l.slope : l.slope * p->dur + l.intercept;
}

// The time of the intercept: of predict_linear the evaluation time, which offset and @ do not move.
PROM_INLINE int64_t intercept_time(int fn, const series *s, const prom_spec *p, window w) {
	return fn == PROM_DERIV ? s->ts[w.lo] : time_of(p, w) + p->shift;
}

// Where runs that begin at a sample end.
typedef struct {
	uint32_t constant; // the first sample with another value
	uint32_t regular;  // the first whose distance from the one before is another
} run_ends;

static void find_run_ends(const series *s, run_ends *ends) {
	if (s->n == 0) {
		return;
	}
	ends[s->n - 1] = (run_ends){s->n, s->n};
	for (uint32_t i = s->n - 1; i-- > 0;) {
		run_ends next = ends[i + 1];
		bool same = i + 2 == s->n || s->ts[i + 1] - s->ts[i] == s->ts[i + 2] - s->ts[i + 1];
		ends[i] = (run_ends){s->v[i + 1] == s->v[i] ? next.constant : i + 1, same ? next.regular : i + 2};
	}
}

// The times of regular samples, and the sums of the first ones and of their squares. Windows whose
// samples have the same distance from each other and from the intercept share them.
typedef struct {
	double x, sum_x, sum_xx;
} instant;

typedef struct {
	int64_t first, interval; // ms
	instant *at;
	uint32_t n;
	double sum_x, c_x, sum_xx, c_xx;
} instants;

PROM_INLINE void reach_instant(instants *t, uint32_t n) {
	for (; t->n < n; t->n++) {
		double x = (double)(t->first + (int64_t)t->n * t->interval) / 1e3;
		kahan_add(x, &t->sum_x, &t->c_x);
		kahan_add(x * x, &t->sum_xx, &t->c_xx);
		t->at[t->n] = (instant){x, t->sum_x + t->c_x, t->sum_xx + t->c_xx};
	}
}

PROM_INLINE line line_of(const instants *t, uint32_t samples, double sum_y, double sum_xy) {
	double n = samples, sum_x = t->at[samples - 1].sum_x;
	double cov_xy = sum_xy - sum_x * sum_y / n;
	double var_x = t->at[samples - 1].sum_xx - sum_x * sum_x / n;
	double slope = cov_xy / var_x;
	return (line){slope, sum_y / n - slope * sum_x / n};
}

// What is known of a series before its windows are computed, and memory for their times.
typedef struct {
	const run_ends *ends; // of the runs from each sample on
	instant *at;
	prefixes before; // at NULL: they are not used
	bool tame;
} known_series;

// The sums of the lanes' values, and of their products with the times.
PROM_INLINE void add_products(const series *s, const batch *b, const instants *t, uint32_t common, bool sum_values, double sums[4][LANES]) {
	lanes y = {0}, cy = {0}, xy = {0}, cxy = {0};
	const double *v0 = s->v + b->w[0].lo, *v1 = s->v + b->w[1].lo, *v2 = s->v + b->w[2].lo, *v3 = s->v + b->w[3].lo;
	for (uint32_t i = 0; i < common; i++) {
		const lanes v = {v0[i], v1[i], v2[i], v3[i]};
		if (sum_values) {
			TAME_ADD_LANES(v, y, cy);
		}
		TAME_ADD_LANES(v * t->at[i].x, xy, cxy);
	}
	memcpy(sums[0], &y, sizeof y);
	memcpy(sums[1], &cy, sizeof cy);
	memcpy(sums[2], &xy, sizeof xy);
	memcpy(sums[3], &cxy, sizeof cxy);
}

// The compensated sum of samples lo..hi-1, of which that of those before from is known.
PROM_INLINE double add_values(const double *v, uint32_t from, uint32_t hi, double sum, double c) {
	for (uint32_t i = from; i < hi; i++) {
		kahan_add(v[i], &sum, &c);
	}
	return sum + c;
}

// Computes the windows of a batch, whose times are t.
PROM_INLINE void fit_batch(int fn, const series *s, const prom_spec *p, batch *b, instants *t, const known_series *x, double *out) {
	if (b->n == 0) {
		return;
	}
	uint32_t common = fill_batch(b);
	double sums[4][LANES];
	reach_instant(t, common);
	const bool known = x->before.at != NULL;
	if (known) {
		add_products(s, b, t, common, false, sums);
	} else {
		add_products(s, b, t, common, true, sums);
	}
	for (int l = 0; l < LANES; l++) {
		const window *w = &b->w[l];
		uint32_t n = w->hi - w->lo;
		double sum_xy = sums[2][l], c_xy = sums[3][l], sum_y;
		reach_instant(t, n);
		for (uint32_t i = common; i < n; i++) {
			kahan_add(s->v[w->lo + i] * t->at[i].x, &sum_xy, &c_xy);
		}
		if (!known) {
			sum_y = add_values(s->v, w->lo + common, w->hi, sums[0][l], sums[1][l]);
		} else if (!certain_sum(&x->before, w->lo, w->hi, &sum_y)) {
			sum_y = add_values(s->v, w->lo, w->hi, 0, 0);
		}
		out[w->k] = of_line(fn, p, line_of(t, n, sum_y, sum_xy + c_xy));
	}
}

PROM_INLINE int run(int fn, const series *s, const prom_spec *p, double *out, const known_series *x) {
	batch b = {.n = 0};
	instants t = {.at = x->at};
	int any = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		const window w = s->windows[i];
		if (w.hi - w.lo < 2) {
			continue;
		}
		any = 1;
		const int64_t intercept = intercept_time(fn, s, p, w);
		if (!x->tame || x->ends[w.lo].constant >= w.hi || x->ends[w.lo].regular < w.hi) {
			out[w.k] = of_line(fn, p, x->tame ? fit(s, w.lo, w.hi, intercept, true) : fit(s, w.lo, w.hi, intercept, false));
			continue;
		}
		const int64_t first = s->ts[w.lo] - intercept, interval = s->ts[w.lo + 1] - s->ts[w.lo];
		if (first != t.first || interval != t.interval) {
			fit_batch(fn, s, p, &b, &t, x, out);
			t = (instants){.first = first, .interval = interval, .at = x->at};
		}
		b.w[b.n++] = w;
		if (b.n == LANES) {
			fit_batch(fn, s, p, &b, &t, x, out);
		}
	}
	fit_batch(fn, s, p, &b, &t, x, out);
	return any;
}

// Not inlined: a compiler may order the operands of a sum differently in each place, and so choose
// another NaN of several.
__attribute__((noinline)) static double smoothing(const series *s, const prom_spec *p, window w, void *state) {
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

PROM_INLINE int run_any(int fn, const series *s, const prom_spec *p, double *out, known_series *x, sum_before *before) {
	double largest;
	x->tame = all_tame(s->v, s->n, &largest);
	if (x->tame && overlap_much(p)) {
		add_up(s->v, s->n, largest, before, &x->before);
	}
	if (fn == PROM_DERIV) {
		return run(PROM_DERIV, s, p, out, x);
	}
	return run(PROM_PREDICT_LINEAR, s, p, out, x);
}

RUN_BEST((int fn, const series *s, const prom_spec *p, double *out, known_series *x, sum_before *before), (fn, s, p, out, x, before))

int prom_range_trend(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	if (fn == PROM_DOUBLE_EXPONENTIAL_SMOOTHING) {
		return each_window(s, p, out, 2, smoothing, NULL);
	}
	const size_t room = (size_t)s->n + 1;
	sum_before *before = prom_scratch_take(scratch, room * (sizeof *before + sizeof(instant) + sizeof(run_ends)));
	if (before == NULL) {
		return -1;
	}
	instant *at = (instant *)(before + room);
	run_ends *ends = (run_ends *)(at + room);
	find_run_ends(s, ends);
	known_series x = {.ends = ends, .at = at};
	return run_best(fn, s, p, out, &x, before);
}
