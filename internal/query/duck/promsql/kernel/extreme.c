// min, max and their times. Windows that are alike are computed together, of blocks of
// samples; see of_windows. Otherwise a window consists of a left and a right stretch. The extreme of
// every suffix of the left stretch is known, and the extreme of the whole right stretch. As the
// window moves, the left stretch shrinks and the right one grows; when the left one is empty, the
// whole window becomes the left stretch. So each sample is read twice, however many windows contain
// it.
#include "lanes.h"

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

PROM_INLINE bool has_nan(const series *s) {
	uint64_t nan = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		nan |= s->v[i] != s->v[i];
	}
	return nan != 0;
}

// The extreme of n values, at least one, none of them NaN.
PROM_INLINE double extreme_of(const double *v, uint32_t n, double (*pick)(double a, double b)) {
	double e = v[0];
	for (uint32_t i = 1; i < n; i++) {
		e = pick(e, v[i]);
	}
	return e;
}

// The extremes of n blocks of stride samples, which is mostly a small number.
PROM_INLINE void of_blocks(const double *v, uint32_t stride, uint32_t n, double *blocks, double (*pick)(double a, double b)) {
	if (stride == 4) {
		for (uint32_t i = 0; i < n; i++, v += 4) {
			blocks[i] = pick(pick(v[0], v[1]), pick(v[2], v[3]));
		}
		return;
	}
	for (uint32_t i = 0; i < n; i++, v += stride) {
		blocks[i] = extreme_of(v, stride, pick);
	}
}

// Chooses n times between a and b. out may be a, and b may be later in the memory of a.
PROM_INLINE void pick_each(double *out, const double *a, const double *b, uint32_t n, double (*pick)(double a, double b)) {
#pragma GCC ivdep
	for (uint32_t i = 0; i < n; i++) {
		out[i] = pick(a[i], b[i]);
	}
}

// The extremes of windows of n samples, which begin stride samples apart, at most n. Each consists
// of q blocks of stride samples, and of some samples of the next block. The extremes of all blocks
// are computed first, then those of two neighbours, of four and so on: of any number that is a power
// of two, two that overlap are enough for a window. blocks has room for windows + q.
PROM_INLINE void of_windows(const double *v, uint32_t n, uint32_t stride, uint32_t windows, double *out, double *blocks, double (*pick)(double a, double b)) {
	const uint32_t q = n / stride, rest = n % stride;
	of_blocks(v, stride, windows + q - 1, blocks, pick);
	uint32_t m = 1; // what blocks[i] is the extreme of, in blocks
	for (; 2 * m <= q; m *= 2) {
		pick_each(blocks, blocks, blocks + m, windows + q - 2 * m, pick);
	}
	pick_each(out, blocks, blocks + (q - m), windows, pick);
	for (uint32_t i = 0; rest > 0 && i < windows; i++) {
		out[i] = pick(out[i], extreme_of(v + (size_t)(i + q) * stride, rest, pick));
	}
}

// each_window of values without NaN: windows that are alike are computed together.
PROM_INLINE int alike_extremes(const series *s, double *out, double *blocks, double (*pick)(double a, double b)) {
	for (const window *w = s->windows, *end = w + s->count; w < end; w++) {
		const uint32_t n = w->hi - w->lo, stride = w->alike > 0 ? w[1].lo - w->lo : n + 1;
		if (stride > n) { // no other window has a sample of this one, as far as is known
			out[w->k] = extreme_of(s->v + w->lo, n, pick);
			continue;
		}
		of_windows(s->v + w->lo, n, stride, w->alike + 1, out + w->k, blocks, pick);
		w += w->alike;
	}
	return s->count > 0;
}

// Of fewer windows than this, on the average, that are alike, each is computed from the one before.
#define FEW_ALIKE 8

// Whether many of the windows are alike.
static bool many_alike(const series *s) {
	uint32_t runs = 0;
	for (uint32_t i = 0; i < s->count; i += s->windows[i].alike + 1) {
		runs++;
	}
	return s->count / FEW_ALIKE >= runs;
}

PROM_INLINE int run(int fn, const series *s, const prom_spec *p, double *out, void *memory) {
	stretches x = {.suffix = memory};
	values y = {.suffix = memory};
	if (has_nan(s)) {
		return each_window(s, p, out, 1, fn == PROM_MAX_OVER_TIME ? max_over_time : min_over_time, &x);
	}
	if (many_alike(s)) {
		return alike_extremes(s, out, memory, fn == PROM_MAX_OVER_TIME ? value_max : value_min);
	}
	return each_window(s, p, out, 1, fn == PROM_MAX_OVER_TIME ? max_value : min_value, &y);
}

PROM_INLINE int run_any(int fn, const series *s, const prom_spec *p, double *out, void *memory) {
	return fn == PROM_MAX_OVER_TIME ? run(PROM_MAX_OVER_TIME, s, p, out, memory) : run(PROM_MIN_OVER_TIME, s, p, out, memory);
}

RUN_BEST((int fn, const series *s, const prom_spec *p, double *out, void *memory), (fn, s, p, out, memory))

int prom_range_extreme(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	void *memory = prom_scratch_take(scratch, ((size_t)s->n + 1) * sizeof(double));
	if (memory == NULL) {
		return -1;
	}
	stretches x = {.suffix = memory};
	switch (fn) {
	case PROM_TS_OF_MAX_OVER_TIME:
		return each_window(s, p, out, 1, ts_of_max, &x);
	case PROM_TS_OF_MIN_OVER_TIME:
		return each_window(s, p, out, 1, ts_of_min, &x);
	}
	return run_best(fn, s, p, out, memory);
}
