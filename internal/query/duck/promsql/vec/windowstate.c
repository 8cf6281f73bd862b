// Gathering the samples of a window.
#include "windowstate.h"

#include <stdlib.h>

#define SMALLEST 8

bool window_extend(window_state *s, const window_shape *shape, bool slides) {
	if (s->shape.range == 0) {
		s->shape = *shape;
		return true;
	}
	if (s->shape.range != shape->range || s->shape.step != shape->step || s->shape.n != shape->n || s->shape.window != shape->window ||
	    s->shape.shift != shape->shift || memcmp(s->shape.parameters, shape->parameters, sizeof shape->parameters) != 0) {
		return false;
	}
	if (slides && shape->end > s->shape.end) {
		s->shape.end = shape->end;
	}
	return slides || shape->end == s->shape.end;
}

// Drops samples before the window, which only moves on.
static void prune(window_state *s) {
	int64_t from = s->shape.end - s->shape.range;
	if (!s->unsorted && (s->n == 0 || s->ts[0] > from)) {
		return;
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		s->ts[kept] = s->ts[i];
		s->v[kept] = s->v[i];
		kept += s->ts[i] > from;
	}
	s->n = kept;
}

// Makes room for n more samples.
static bool reserve(window_state *s, prom_budget *b, uint32_t n) {
	if (n <= s->cap - s->n) {
		return true;
	}
	prune(s);
	uint64_t want = (uint64_t)s->n + n, cap = s->n + s->n / 2;
	cap = cap < want ? want : cap;
	cap = cap < SMALLEST ? SMALLEST : cap;
	if (want <= s->cap) {
		return true;
	}
	if (cap > UINT32_MAX) { // far beyond every budget
		return false;
	}
	int64_t *ts = prom_alloc(b, cap * (sizeof(int64_t) + sizeof(double)));
	if (ts == NULL) {
		return false;
	}
	double *v = (double *)(ts + cap);
	if (s->n > 0) {
		memcpy(ts, s->ts, s->n * sizeof *ts);
		memcpy(v, s->v, s->n * sizeof *v);
	}
	prom_free(s->ts);
	s->ts = ts;
	s->v = v;
	s->cap = (uint32_t)cap;
	return true;
}

bool window_add(window_state *s, prom_budget *b, const int64_t *ts, const double *v, uint32_t n) {
	int64_t from = s->shape.end - s->shape.range;
	while (n > 0 && *ts <= from) { // samples mostly ascend
		ts++;
		v++;
		n--;
	}
	if (!reserve(s, b, n)) {
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		s->unsorted |= s->n > 0 && ts[i] <= s->ts[s->n - 1];
		s->ts[s->n] = ts[i];
		s->v[s->n++] = v[i];
	}
	return true;
}

typedef struct {
	int64_t ts;
	double v;
	uint32_t arrival;
} arrived;

static int by_time(const void *x, const void *y) {
	const arrived *a = x, *b = y;
	return a->ts != b->ts ? (a->ts > b->ts) - (a->ts < b->ts) : (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

bool window_sort(window_state *s, prom_budget *b) {
	if (!s->unsorted) {
		return true;
	}
	arrived *all = prom_alloc(b, s->n * sizeof *all);
	if (all == NULL) {
		return false;
	}
	for (uint32_t i = 0; i < s->n; i++) {
		all[i] = (arrived){s->ts[i], s->v[i], i};
	}
	qsort(all, s->n, sizeof *all, by_time);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		kept -= kept > 0 && s->ts[kept - 1] == all[i].ts;
		s->ts[kept] = all[i].ts;
		s->v[kept++] = all[i].v;
	}
	prom_free(all);
	s->n = kept;
	s->unsorted = false;
	return true;
}

void window_clear(window_state *s) {
	prom_free(s->ts);
	*s = (window_state){0};
}
