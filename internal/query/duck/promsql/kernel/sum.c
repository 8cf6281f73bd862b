// sum, avg, stddev and stdvar. Their sums are compensated and depend on the order of additions, so
// every window is summed from scratch, several windows at once, one per lane. If a window's values
// are integers so small that no sum of them is rounded, the compensation is always zero and the sum
// is the difference of two prefix sums. prefix.h has what else spares additions.
#include "phases.h"
#include "prefix.h"

// Beyond this bound integers are no exact doubles.
#define EXACT 9007199254740992.0

// Sums of the values before each sample, modulo 2^64, and the largest magnitude among the values.
// NULL: not all are integers.
typedef struct {
	uint64_t *before;
	double largest;
} integers;

// Upstream's average of a window whose sum overflows: from there on the running mean is adjusted by
// every value.
static double avg_overflowing(const double *v, uint32_t n) {
	double sum = v[0], c = 0, mean = 0;
	bool incremental = false;
	for (uint32_t i = 1; i < n; i++) {
		double count = i + 1;
		if (!incremental) {
			double new_sum = sum, new_c = c;
			kahan_add(v[i], &new_sum, &new_c);
			if (!isinf(new_sum)) {
				sum = new_sum;
				c = new_c;
				continue;
			}
			incremental = true;
			mean = sum / (count - 1);
			c /= count - 1;
		}
		double q = (count - 1) / count;
		mean *= q;
		c *= q;
		kahan_add(v[i] / count, &mean, &c);
	}
	return incremental ? mean + c : sum / n + c / n;
}

// The result of a window's sum.
PROM_INLINE double finish_sum(int fn, const double *v, uint32_t n, double sum, double c) {
	if (fn == PROM_SUM_OVER_TIME) {
		return isinf(sum) ? sum : sum + c;
	}
	if (!isfinite(sum)) {
		return avg_overflowing(v, n);
	}
	return sum / n + c / n;
}

PROM_INLINE void sum_batch(int fn, bool tame, const double *v, const batch *b, uint32_t common, double *out) {
	lanes sum = {0}, c = {0};
	const double *v0 = v + b->w[0].lo, *v1 = v + b->w[1].lo, *v2 = v + b->w[2].lo, *v3 = v + b->w[3].lo;
	for (uint32_t i = 0; i < common; i++) {
		const lanes x = {v0[i], v1[i], v2[i], v3[i]};
		ADD_LANES(tame, x, sum, c);
	}
	for (int l = 0; l < LANES; l++) {
		const window *w = &b->w[l];
		double s = sum[l], comp = c[l];
		for (uint32_t i = w->lo + common; i < w->hi; i++) {
			kahan_add(v[i], &s, &comp);
		}
		out[w->k] = finish_sum(fn, v + w->lo, w->hi - w->lo, s, comp);
	}
}

PROM_INLINE double finish_variance(int fn, uint32_t n, double aux, double c) {
	double variance = (aux + c) / n;
	return fn == PROM_STDVAR_OVER_TIME ? variance : sqrt(variance);
}

PROM_INLINE void variance_batch(int fn, bool tame, const double *v, const batch *b, uint32_t common, double *out) {
	lanes mean = {0}, mean_c = {0}, aux = {0}, aux_c = {0}, count = {0};
	const double *v0 = v + b->w[0].lo, *v1 = v + b->w[1].lo, *v2 = v + b->w[2].lo, *v3 = v + b->w[3].lo;
	for (uint32_t i = 0; i < common; i++) {
		const lanes x = {v0[i], v1[i], v2[i], v3[i]};
		count += 1;
		const lanes delta = x - (mean + mean_c);
		ADD_LANES(tame, delta / count, mean, mean_c);
		ADD_LANES(tame, delta * (x - (mean + mean_c)), aux, aux_c);
	}
	for (int l = 0; l < LANES; l++) {
		const window *w = &b->w[l];
		double m = mean[l], mc = mean_c[l], a = aux[l], ac = aux_c[l];
		for (uint32_t i = w->lo + common; i < w->hi; i++) {
			double delta = v[i] - (m + mc);
			kahan_add(delta / (i + 1 - w->lo), &m, &mc);
			kahan_add(delta * (v[i] - (m + mc)), &a, &ac);
		}
		out[w->k] = finish_variance(fn, w->hi - w->lo, a, ac);
	}
}

// Computes the windows of a batch.
PROM_INLINE void flush(int fn, bool tame, const double *v, batch *b, double *out) {
	uint32_t common = fill_batch(b);
	if (fn == PROM_SUM_OVER_TIME || fn == PROM_AVG_OVER_TIME) {
		sum_batch(fn, tame, v, b, common, out);
	} else {
		variance_batch(fn, tame, v, b, common, out);
	}
}

// Whether a window's sum and all its partial sums are exact.
PROM_INLINE bool exact(const integers *x, window w) { return x->before != NULL && (double)(w.hi - w.lo) * x->largest <= EXACT; }

// What is known of a series before its windows are computed.
typedef struct {
	integers whole;
	prefixes before; // at NULL: they are not used
	phases phases;   // stride 0: they are not used
} known_sums;

// Windows of as many samples each, a stride apart, whose averages are computed together.
typedef struct {
	window w[GROUP];
	uint32_t n;
} group;

PROM_INLINE void add_to_batch(int fn, bool tame, const double *v, batch *b, window w, double *out) {
	b->w[b->n++] = w;
	if (b->n == LANES) {
		flush(fn, tame, v, b, out);
	}
}

// Computes the windows of a group. Those whose average is uncertain go into the batch.
PROM_INLINE void flush_group(const double *v, const known_sums *x, group *g, batch *b, double *out) {
	if (g->n == 0) {
		return;
	}
	double sums[GROUP];
	plain_sums(&x->phases, g->w[0].lo, g->w[0].hi - g->w[0].lo, sums);
	for (uint32_t i = 0; i < g->n; i++) {
		const window w = g->w[i];
		if (!certain_average(&x->before, w.lo, w.hi, sums[i], &out[w.k])) {
			add_to_batch(PROM_AVG_OVER_TIME, true, v, b, w, out);
		}
	}
	g->n = 0;
}

PROM_INLINE int run(int fn, bool tame, const series *s, double *out, const known_sums *x) {
	batch b = {.n = 0};
	group g = {.n = 0};
	uint32_t lo = 0, n = 0; // of the window before
	for (uint32_t i = 0; i < s->count; i++) {
		const window w = s->windows[i];
		if (exact(&x->whole, w)) {
			double sum = (double)(int64_t)(x->whole.before[w.hi] - x->whole.before[w.lo]);
			out[w.k] = fn == PROM_SUM_OVER_TIME ? sum : sum / (w.hi - w.lo);
			continue;
		}
		if (fn == PROM_SUM_OVER_TIME && tame && x->before.at != NULL && certain_sum(&x->before, w.lo, w.hi, &out[w.k])) {
			continue;
		}
		if (fn == PROM_AVG_OVER_TIME && tame && x->phases.stride > 0) {
			const bool follows = w.hi - w.lo == n && w.lo == lo + x->phases.stride;
			lo = w.lo, n = w.hi - w.lo;
			if (!follows || g.n == GROUP) {
				flush_group(s->v, x, &g, &b, out);
			}
			if (follows) {
				g.w[g.n++] = w;
				continue;
			}
		}
		add_to_batch(fn, tame, s->v, &b, w, out);
	}
	flush_group(s->v, x, &g, &b, out);
	if (b.n > 0) {
		flush(fn, tame, s->v, &b, out);
	}
	return s->count > 0;
}

PROM_INLINE int run_values(int fn, bool tame, const series *s, double *out, const known_sums *x) {
	switch (fn) {
	case PROM_SUM_OVER_TIME:
		return run(PROM_SUM_OVER_TIME, tame, s, out, x);
	case PROM_AVG_OVER_TIME:
		return run(PROM_AVG_OVER_TIME, tame, s, out, x);
	case PROM_STDDEV_OVER_TIME:
		return run(PROM_STDDEV_OVER_TIME, tame, s, out, x);
	default: // PROM_STDVAR_OVER_TIME
		return run(PROM_STDVAR_OVER_TIME, tame, s, out, x);
	}
}

// Takes memory for what helps to compute overlapping windows of tame values that are not whole.
// Returns false if there is none.
PROM_INLINE bool prepare(int fn, const series *s, const prom_spec *p, double largest, known_sums *x, prom_scratch *scratch) {
	if (x->whole.before != NULL || !overlap_much(p)) {
		return true;
	}
	sum_before *before = prom_scratch_take(scratch, ((size_t)s->n + 1) * sizeof *before + phases_room(s->n) * sizeof(double));
	if (before == NULL) {
		return false;
	}
	add_up(s->v, s->n, largest, before, &x->before);
	x->phases.at = (double *)(before + s->n + 1);
	if (fn == PROM_AVG_OVER_TIME && (x->phases.stride = stride_of(s, p)) > 0) {
		fill_phases(s->v, s->n, &x->phases);
	}
	return true;
}

PROM_INLINE int run_any(int fn, const series *s, const prom_spec *p, double *out, known_sums *x, prom_scratch *scratch) {
	double largest;
	if (!all_tame(s->v, s->n, &largest)) {
		return run_values(fn, false, s, out, x);
	}
	if ((fn == PROM_SUM_OVER_TIME || fn == PROM_AVG_OVER_TIME) && !prepare(fn, s, p, largest, x, scratch)) {
		return -1;
	}
	return run_values(fn, true, s, out, x);
}

RUN_BEST((int fn, const series *s, const prom_spec *p, double *out, known_sums *x, prom_scratch *scratch), (fn, s, p, out, x, scratch))

// Fills x->before if all values are integers. Its memory has room for one more than there are
// samples.
static void sum_integers(const series *s, uint64_t *before, integers *x) {
	uint64_t sum = 0;
	double largest = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		double v = s->v[i];
		if (!(fabs(v) <= EXACT) || v != (double)(int64_t)v) {
			return;
		}
		largest = fabs(v) > largest ? fabs(v) : largest;
		before[i] = sum;
		sum += (uint64_t)(int64_t)v;
	}
	before[s->n] = sum;
	x->before = before;
	x->largest = largest;
}

int prom_range_sum(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	known_sums x = {0};
	if (fn == PROM_SUM_OVER_TIME || fn == PROM_AVG_OVER_TIME) {
		uint64_t *before = prom_scratch_take(scratch, ((size_t)s->n + 1) * sizeof *before);
		if (before == NULL) {
			return -1;
		}
		sum_integers(s, before, &x.whole);
	}
	return run_best(fn, s, p, out, &x, scratch);
}
