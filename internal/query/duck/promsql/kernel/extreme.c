// min, max and their times. A window consists of a left and a right stretch. The extreme of every
// suffix of the left stretch is known, and the extreme of the whole right stretch. As the window
// moves, the left stretch shrinks and the right one grows; when the left one is empty, the whole
// window becomes the left stretch. So each sample is read twice, however many windows contain it.
#include "window.h"

// Choose between the extreme a of earlier samples and the extreme b of later ones. Upstream's loops
// are left folds of these functions, which are associative: a number wins over NaN, and the last of
// several NaNs wins.
PROM_INLINE uint32_t later_max(const double *v, uint32_t a, uint32_t b) { return v[b] > v[a] || v[a] != v[a] ? b : a; }
PROM_INLINE uint32_t later_min(const double *v, uint32_t a, uint32_t b) { return v[b] < v[a] || v[a] != v[a] ? b : a; }

// Of equal extremes upstream's ts_of functions take the last one.
PROM_INLINE uint32_t last_max(const double *v, uint32_t a, uint32_t b) { return v[b] >= v[a] || v[a] != v[a] ? b : a; }
PROM_INLINE uint32_t last_min(const double *v, uint32_t a, uint32_t b) { return v[b] <= v[a] || v[a] != v[a] ? b : a; }

// The stretches of the current window: lo..middle-1 and middle..end-1.
typedef struct {
	uint32_t *suffix; // suffix[i] is the index of the extreme of samples i..middle-1
	uint32_t middle, end;
	uint32_t right; // the index of the extreme of the right stretch, if it has samples
} stretches;

// The index of the extreme of a window.
PROM_INLINE uint32_t extreme(const series *s, window w, stretches *x, uint32_t (*pick)(const double *v, uint32_t a, uint32_t b)) {
	const double *v = s->v;
	if (w.lo >= x->middle) {
		uint32_t e = w.hi - 1;
		x->suffix[e] = e;
		for (uint32_t i = e; i-- > w.lo;) {
			x->suffix[i] = e = pick(v, i, e);
		}
		x->middle = x->end = w.hi;
		return e;
	}
	for (; x->end < w.hi; x->end++) {
		x->right = x->end == x->middle ? x->end : pick(v, x->right, x->end);
	}
	return x->end == x->middle ? x->suffix[w.lo] : pick(v, x->suffix[w.lo], x->right);
}

// The same over values without NaN, the usual case: no index is needed, and a choice is one
// instruction.
typedef struct {
	double *suffix;
	uint32_t middle, end;
	double right;
} values;

PROM_INLINE double value_max(double a, double b) { return b > a ? b : a; }
PROM_INLINE double value_min(double a, double b) { return b < a ? b : a; }

PROM_INLINE double extreme_value(const series *s, window w, values *x, double (*pick)(double a, double b)) {
	const double *v = s->v;
	if (w.lo >= x->middle) {
		double e = v[w.hi - 1];
		x->suffix[w.hi - 1] = e;
		for (uint32_t i = w.hi - 1; i-- > w.lo;) {
			x->suffix[i] = e = pick(v[i], e);
		}
		x->middle = x->end = w.hi;
		return e;
	}
	if (w.hi == x->middle) {
		return x->suffix[w.lo];
	}
	double e = x->end == x->middle ? v[x->end++] : x->right;
	for (; x->end < w.hi; x->end++) {
		e = pick(e, v[x->end]);
	}
	x->right = e;
	return pick(x->suffix[w.lo], e);
}

#define EXTREME(name, value) \
	PROM_INLINE double name(const series *s, const prom_spec *p, window w, void *x) { \
		(void)p; \
		return value; \
	}

EXTREME(max_value, extreme_value(s, w, x, value_max))
EXTREME(min_value, extreme_value(s, w, x, value_min))
EXTREME(max_over_time, s->v[extreme(s, w, x, later_max)])
EXTREME(min_over_time, s->v[extreme(s, w, x, later_min)])
EXTREME(ts_of_max, (double)s->ts[extreme(s, w, x, last_max)] / 1000)
EXTREME(ts_of_min, (double)s->ts[extreme(s, w, x, last_min)] / 1000)

static bool has_nan(const series *s) {
	uint64_t nan = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		nan |= s->v[i] != s->v[i];
	}
	return nan != 0;
}

int prom_range_extreme(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	void *suffix = prom_scratch_take(scratch, ((size_t)s->n + 1) * sizeof(double));
	if (suffix == NULL) {
		return -1;
	}
	stretches x = {.suffix = suffix};
	values y = {.suffix = suffix};
	switch (fn) {
	case PROM_TS_OF_MAX_OVER_TIME:
		return each_window(s, p, out, 1, ts_of_max, &x);
	case PROM_TS_OF_MIN_OVER_TIME:
		return each_window(s, p, out, 1, ts_of_min, &x);
	case PROM_MAX_OVER_TIME:
		return has_nan(s) ? each_window(s, p, out, 1, max_over_time, &x) : each_window(s, p, out, 1, max_value, &y);
	default: // PROM_MIN_OVER_TIME
		return has_nan(s) ? each_window(s, p, out, 1, min_over_time, &x) : each_window(s, p, out, 1, min_value, &y);
	}
}
