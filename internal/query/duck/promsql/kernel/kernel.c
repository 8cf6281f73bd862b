// A kernel as its callers see it: samples of a series, windows, then the function.
#include "window.h"

#include <stdio.h>
#include <stdlib.h>

#define FUNCTION(id, name, kernel, keys) {name, kernel, keys},
static const struct {
	const char *name;
	int (*kernel)(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch);
	uint32_t parameters; // spec keys beside the grid and range
} functions[] = {PROM_RANGE_LIST(FUNCTION)};
#undef FUNCTION

int prom_range_find(const char *name, size_t len) {
	for (int fn = 0; fn < PROM_RANGE_FUNCTIONS; fn++) {
		if (strlen(functions[fn].name) == len && memcmp(functions[fn].name, name, len) == 0) {
			return fn;
		}
	}
	return -1;
}

uint32_t prom_range_keys(int fn) { return PROM_KEYS_GRID | PROM_KEY_RANGE | functions[fn].parameters; }

bool prom_range_sees_stale(int fn) { return fn == PROM_INSTANT || fn == PROM_TIMESTAMP; }

prom_kernel prom_kernel_of(int fn, const prom_spec *spec) {
	const prom_scratch none = {.budget = spec->budget};
	return (prom_kernel){.fn = fn, .spec = *spec, .series = none, .scratch = none, .windows = none, .known = -1};
}

void prom_kernel_clear(prom_kernel *k) {
	prom_scratch_free(&k->series);
	prom_scratch_free(&k->scratch);
	prom_scratch_free(&k->windows);
}

prom_kernel *prom_kernel_open(int fn, const char *text, size_t len, char err[PROM_ERROR_BYTES]) {
	prom_kernel *k = malloc(sizeof *k);
	prom_spec spec;
	if (k == NULL) {
		snprintf(err, PROM_ERROR_BYTES, "out of memory");
		return NULL;
	}
	if (!prom_spec_parse(&spec, text, len, prom_range_keys(fn), 0, err)) {
		free(k);
		return NULL;
	}
	*k = prom_kernel_of(fn, &spec);
	return k;
}

void prom_kernel_close(prom_kernel *k) {
	prom_kernel_clear(k);
	prom_spec_close(&k->spec);
	free(k);
}

static uint32_t count_stale(const double *v, uint32_t n) {
	uint32_t stale = 0;
	for (uint32_t i = 0; i < n; i++) {
		stale += prom_is_absent(v[i]);
	}
	return stale;
}

// Copies the samples that are no stale markers, of which there are kept, into scratch memory.
// Returns false if the budget refuses it.
static bool drop_stale(prom_scratch *scratch, series *s, uint32_t kept) {
	// One more element: the loop also writes stale markers, one past the end.
	int64_t *ts = prom_scratch_take(scratch, ((size_t)kept + 1) * (sizeof(int64_t) + sizeof(double)));
	if (ts == NULL) {
		return false;
	}
	double *v = (double *)(ts + kept + 1);
	for (uint32_t i = 0, at = 0; i < s->n; i++) {
		ts[at] = s->ts[i];
		v[at] = s->v[i];
		at += !prom_is_absent(s->v[i]);
	}
	*s = (series){.ts = ts, .v = v, .n = kept};
	return true;
}

// Returns the first sample from i on that is after t; samples before i are not. Regular samples
// move by as much as in the last step, which is tried first.
static inline uint32_t first_after(const series *s, uint32_t i, int64_t t, uint32_t *moved) {
	const int64_t *ts = s->ts;
	if (*moved < s->n - i && ts[i + *moved] > t && (*moved == 0 || ts[i + *moved - 1] <= t)) {
		return i + *moved;
	}
	uint32_t from = i;
	while (i < s->n && ts[i] <= t) {
		i++;
	}
	*moved = i - from;
	return i;
}

// Whether b is a window like a on the next step; see window.
static bool follows(const series *s, const prom_spec *p, const window *a, const window *b) {
	return b->k == a->k + 1 && b->hi - b->lo == a->hi - a->lo && s->ts[b->lo] - s->ts[a->lo] == p->step && s->ts[b->hi - 1] - s->ts[a->hi - 1] == p->step;
}

// Sets the windows of a series, which are found for the first of several with the same times.
// Returns false if the budget refuses memory.
static bool find_windows(prom_kernel *k, series *s) {
	if (k->known < 0) {
		const prom_spec *p = &k->spec;
		window *w = prom_scratch_take(&k->windows, (size_t)p->n * sizeof *w);
		if (w == NULL) {
			return false;
		}
		uint32_t n = 0, lo = 0, hi = 0, lo_moved = 0, hi_moved = 0;
		bool sparse = false;
		int64_t t = p->start;
		for (uint32_t step = 0; step < p->n; step++, t += p->step) {
			hi = first_after(s, hi, t, &hi_moved);
			lo = first_after(s, lo, t - p->range, &lo_moved);
			if (hi > lo) {
				w[n++] = (window){.k = step, .lo = lo, .hi = hi};
			}
			sparse |= hi < lo + 2;
		}
		for (uint32_t i = n; i-- > 0;) {
			w[i].alike = 0;
			if (i + 1 < n && follows(s, p, &w[i], &w[i + 1]) && (w[i + 1].alike == 0 || w[i + 2].lo - w[i + 1].lo == w[i + 1].lo - w[i].lo)) {
				w[i].alike = w[i + 1].alike + 1;
			}
		}
		k->known = n;
		k->sparse = sparse;
	}
	s->windows = k->windows.mem;
	s->count = (uint32_t)k->known;
	return true;
}

int prom_kernel_eval(prom_kernel *k, const int64_t *ts, const double *v, uint32_t n, int facts, double *out) {
	if (prom_cancelled(k->spec.budget)) {
		return PROM_KERNEL_CANCELLED;
	}
	series s = {.ts = ts, .v = v, .n = n};
	uint32_t stale = (facts & PROM_NO_STALE) != 0 || prom_range_sees_stale(k->fn) ? 0 : count_stale(v, n);
	if ((facts & PROM_SAME_TIMES) == 0 || stale > 0) {
		k->known = -1;
	}
	int present = 0;
	if (stale < n) {
		if ((stale > 0 && !drop_stale(&k->series, &s, n - stale)) || !find_windows(k, &s)) {
			return PROM_KERNEL_REFUSED;
		}
		if (stale > 0) {
			k->known = -1; // they are not those of the times
		}
	}
	if (stale == n || k->sparse) {
		for (int64_t step = 0; step < k->spec.n; step++) {
			out[step] = prom_absent_value();
		}
	}
	if (stale < n) {
		present = functions[k->fn].kernel(k->fn, &s, &k->spec, out, &k->scratch);
	}
	return present < 0 ? PROM_KERNEL_REFUSED : present > 0 ? PROM_KERNEL_PRESENT : PROM_KERNEL_NONE;
}
