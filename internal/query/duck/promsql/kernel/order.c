// quantile and mad. Windows that overlap much are kept sorted while they move; for others the order
// statistics are selected.
#include "select.h"

// Windows that gain more samples than this per step are not kept sorted.
#define SORTED_GAIN 30

// Rewriting up to this many keys is faster than searching for a position.
#define SMALL_WINDOW 32

// How many samples a window gains with a step, on average.
static double gain(const series *s, const prom_spec *p) {
	return s->n < 2 ? 0 : (double)s->n * (double)p->step / (double)(s->ts[s->n - 1] - s->ts[0]);
}

// The values of a window as upstream sorts them: first the NaNs, then the keys.
typedef struct {
	int64_t *keys;
	uint32_t nans, n;
	uint32_t lo, hi; // the samples that they are of
	bool sorted;
	int64_t *deviations; // room for as many
} ordered;

static void add(ordered *o, double v) {
	if (v != v) {
		o->nans++;
		return;
	}
	int64_t x = key_of(v);
	uint32_t at = lower_bound(o->keys, o->n, x);
	memmove(o->keys + at + 1, o->keys + at, (size_t)(o->n - at) * sizeof x);
	o->keys[at] = x;
	o->n++;
}

static void drop(ordered *o, double v) {
	if (v != v) {
		o->nans--;
		return;
	}
	uint32_t at = lower_bound(o->keys, o->n, key_of(v));
	o->n--;
	memmove(o->keys + at, o->keys + at + 1, (size_t)(o->n - at) * sizeof *o->keys);
}

// A small window rewrites all keys instead of moving some, which takes no branch that depends on
// values. Every key from gone on is replaced by its successor, and x is inserted in order.
static void replace_in_small(int64_t *keys, uint32_t n, int64_t gone, int64_t x) {
	int64_t before = INT64_MIN; // the key to the left once gone is gone
	keys[n] = INT64_MAX;
	for (uint32_t i = 0; i < n; i++) {
		int64_t key = keys[i] < gone ? keys[i] : keys[i + 1];
		int64_t low = key < x ? key : x;
		keys[i] = before > low ? before : low;
		before = key;
	}
}

static void replace_in_large(int64_t *keys, uint32_t n, int64_t gone, int64_t x) {
	uint32_t from = lower_bound(keys, n, gone), to = lower_bound(keys, n, x);
	if (from < to) {
		to--;
		memmove(keys + from, keys + from + 1, (size_t)(to - from) * sizeof x);
	} else {
		memmove(keys + to + 1, keys + to, (size_t)(from - to) * sizeof x);
	}
	keys[to] = x;
}

// Drops a value and adds another.
static void replace(ordered *o, double from, double to) {
	if (from != from || to != to) {
		drop(o, from);
		add(o, to);
	} else if (o->n <= SMALL_WINDOW) {
		replace_in_small(o->keys, o->n, key_of(from), key_of(to));
	} else {
		replace_in_large(o->keys, o->n, key_of(from), key_of(to));
	}
}

static void load(ordered *o, const double *v, window w) {
	o->nans = o->n = 0;
	for (uint32_t i = w.lo; i < w.hi; i++) {
		o->keys[o->n] = key_of(v[i]);
		o->n += v[i] == v[i];
		o->nans += v[i] != v[i];
	}
}

// Moves on to a window.
static void move_to(ordered *o, const double *v, window w) {
	if (!o->sorted || w.lo >= o->hi) {
		load(o, v, w);
		if (o->sorted) {
			sort_keys(o->keys, o->n);
		}
	} else {
		while (o->lo < w.lo && o->hi < w.hi) {
			replace(o, v[o->lo++], v[o->hi++]);
		}
		while (o->lo < w.lo) {
			drop(o, v[o->lo++]);
		}
		while (o->hi < w.hi) {
			add(o, v[o->hi++]);
		}
	}
	o->lo = w.lo;
	o->hi = w.hi;
}

// The mean of the values at the two ranks that q lies between, weighted. q is 0..1.
static double interpolate(ordered *o, double q) {
	uint32_t n = o->nans + o->n;
	double rank = q * (double)(n - 1) + 0.0; // no -0
	uint32_t lower = (uint32_t)rank, upper = lower + 1 < n ? lower + 1 : n - 1;
	double weight = rank - (double)lower;
	if (lower < o->nans) {
		return NAN;
	}
	lower -= o->nans;
	upper -= o->nans;
	int64_t a, b;
	if (o->sorted) {
		a = o->keys[lower];
		b = o->keys[upper];
	} else {
		select_kth(o->keys, o->n, lower);
		a = b = o->keys[lower];
		if (upper > lower) {
			b = o->keys[upper];
			for (uint32_t i = upper + 1; i < o->n; i++) {
				b = o->keys[i] < b ? o->keys[i] : b;
			}
		}
	}
	return value_of(a) * (1 - weight) + value_of(b) * weight;
}

double (*prom_sorted_quantile)(double q, const double *v, uint32_t n);

static bool has_key(const ordered *o, int64_t x) {
	if (o->sorted) {
		uint32_t at = lower_bound(o->keys, o->n, x);
		return at < o->n && o->keys[at] == x;
	}
	for (uint32_t i = 0; i < o->n; i++) {
		if (o->keys[i] == x) {
			return true;
		}
	}
	return false;
}

PROM_INLINE double quantile(const series *s, const prom_spec *p, window w, void *state) {
	if (p->phi != p->phi) {
		return NAN;
	}
	if (p->phi < 0 || p->phi > 1) {
		return p->phi < 0 ? -INFINITY : INFINITY;
	}
	ordered *o = state;
	move_to(o, s->v, w);
	double q = interpolate(o, p->phi);
	if (q == 0 && prom_sorted_quantile != NULL && has_key(o, key_of(-0.0)) && has_key(o, key_of(0.0))) {
		return prom_sorted_quantile(p->phi, s->v + w.lo, w.hi - w.lo);
	}
	return q;
}

PROM_INLINE double mad(const series *s, const prom_spec *p, window w, void *state) {
	(void)p;
	ordered *o = state;
	move_to(o, s->v, w);
	if (o->nans > 0) {
		return NAN;
	}
	double median = interpolate(o, 0.5);
	ordered d = {.keys = o->deviations};
	for (uint32_t i = 0; i < o->n; i++) {
		double distance = fabs(value_of(o->keys[i]) - median);
		d.keys[d.n] = key_of(distance);
		d.n += distance == distance;
		d.nans += distance != distance;
	}
	return interpolate(&d, 0.5);
}

int prom_range_order(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	int64_t *keys = prom_scratch_take(scratch, ((size_t)s->n + 1) * 2 * sizeof *keys);
	if (keys == NULL) {
		return -1;
	}
	ordered o = {.keys = keys, .deviations = keys + s->n + 1};
	o.sorted = p->n > 1 && p->step < p->range && gain(s, p) < SORTED_GAIN;
	return fn == PROM_MAD_OVER_TIME ? each_window(s, p, out, 1, mad, &o) : each_window(s, p, out, 1, quantile, &o);
}
