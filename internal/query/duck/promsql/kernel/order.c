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

// The values of a window, and what it takes to move on to the next one.
typedef struct {
	ordered values;
	uint32_t lo, hi;     // the samples that they are of
	int64_t *deviations; // room for as many
} moving;

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

// Moves on to a window.
static void move_to(moving *m, const double *v, window w) {
	ordered *o = &m->values;
	if (!o->sorted || w.lo >= m->hi) {
		load_values(o, v + w.lo, w.hi - w.lo);
		if (o->sorted) {
			sort_keys(o->keys, o->n);
		}
	} else {
		while (m->lo < w.lo && m->hi < w.hi) {
			replace(o, v[m->lo++], v[m->hi++]);
		}
		while (m->lo < w.lo) {
			drop(o, v[m->lo++]);
		}
		while (m->hi < w.hi) {
			add(o, v[m->hi++]);
		}
	}
	m->lo = w.lo;
	m->hi = w.hi;
}

double (*prom_sorted_quantile)(double q, const double *v, uint32_t n);

PROM_INLINE double quantile(const series *s, const prom_spec *p, window w, void *state) {
	moving *m = state;
	move_to(m, s->v, w);
	return quantile_of(&m->values, p->phi, s->v + w.lo, w.hi - w.lo);
}

PROM_INLINE double mad(const series *s, const prom_spec *p, window w, void *state) {
	(void)p;
	moving *m = state;
	ordered *o = &m->values;
	move_to(m, s->v, w);
	if (o->nans > 0) {
		return NAN;
	}
	double median = interpolate(o, 0.5);
	ordered d = {.keys = m->deviations};
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
	bool sorted = p->n > 1 && p->step < p->range && gain(s, p) < SORTED_GAIN;
	moving m = {.values = {.keys = keys, .sorted = sorted}, .deviations = keys + s->n + 1};
	return fn == PROM_MAD_OVER_TIME ? each_window(s, p, out, 1, mad, &m) : each_window(s, p, out, 1, quantile, &m);
}
