// A kernel as Go calls it.
#include "kernel.h"
#include "window.h"

#include <stdio.h>
#include <stdlib.h>

prom_kernel *prom_kernel_open(int fn, const char *text, size_t len, char err[PROM_ERROR_BYTES]) {
	prom_kernel *k = calloc(1, sizeof *k);
	if (k == NULL) {
		snprintf(err, PROM_ERROR_BYTES, "out of memory");
		return NULL;
	}
	if (!prom_spec_parse(&k->spec, text, len, prom_range_keys(fn), 0, err)) {
		free(k);
		return NULL;
	}
	k->fn = fn;
	k->series.budget = k->scratch.budget = k->windows.budget = k->spec.budget;
	k->known = -1;
	return k;
}

void prom_kernel_close(prom_kernel *k) {
	prom_scratch_free(&k->series);
	prom_scratch_free(&k->scratch);
	prom_scratch_free(&k->windows);
	prom_spec_close(&k->spec);
	free(k);
}

// Windows of grids of at most so many steps are kept from one series to the next.
#define KEPT_STEPS (1 << 16)

// Whether b is a window like a on the next step; see known_window.
static bool follows(const series *s, const prom_spec *p, const known_window *a, const known_window *b) {
	return b->k == a->k + 1 && b->hi - b->lo == a->hi - a->lo && s->ts[b->lo] - s->ts[a->lo] == p->step && s->ts[b->hi - 1] - s->ts[a->hi - 1] == p->step;
}

// Finds which of n windows are alike.
static void compare_windows(const series *s, const prom_spec *p, known_window *w, uint32_t n) {
	for (uint32_t i = n; i-- > 0;) {
		w[i].alike = 0;
		if (i + 1 < n && follows(s, p, &w[i], &w[i + 1]) && (w[i + 1].alike == 0 || w[i + 2].lo - w[i + 1].lo == w[i + 1].lo - w[i].lo)) {
			w[i].alike = w[i + 1].alike + 1;
		}
	}
}

// Sets the windows of a series, which are computed for the first of several with the same times.
// Returns false if the budget refuses memory.
static bool know_windows(prom_kernel *k, series *s) {
	if (k->known < 0) {
		known_window *to = prom_scratch_take(&k->windows, (size_t)k->spec.n * sizeof *to);
		if (to == NULL) {
			return false;
		}
		uint32_t n = 0;
		window w = before_first(&k->spec);
		while (w.k + 1 < k->spec.n) {
			w.k++;
			w.t += k->spec.step;
			w.hi = first_after(s, w.hi, w.t, &w.hi_moved);
			w.lo = first_after(s, w.lo, w.t - k->spec.range, &w.lo_moved);
			if (w.hi > w.lo) {
				to[n++] = (known_window){.k = (uint32_t)w.k, .lo = w.lo, .hi = w.hi};
			}
		}
		compare_windows(s, &k->spec, to, n);
		k->known = n;
	}
	s->windows = k->windows.mem;
	s->known = (uint32_t)k->known;
	return true;
}

int prom_kernel_eval(prom_kernel *k, const int64_t *ts, const double *v, uint32_t n, int facts, double *out) {
	if (prom_cancelled(k->spec.budget)) {
		return PROM_KERNEL_CANCELLED;
	}
	if ((facts & PROM_SAME_TIMES) == 0) {
		k->known = -1;
	}
	uint32_t stale = (facts & PROM_NO_STALE) != 0 || prom_range_sees_stale(k->fn) ? 0 : prom_count_stale(v, n);
	if (stale > 0 && stale < n && !prom_drop_stale(&k->series, &ts, &v, n, n - stale)) {
		return PROM_KERNEL_REFUSED;
	}
	if (stale == n) { // no sample is left, or there was none
		for (int64_t step = 0; step < k->spec.n; step++) {
			out[step] = prom_absent_value();
		}
		return PROM_KERNEL_NONE;
	}
	series s = {.ts = ts, .v = v, .n = n - stale};
	if (stale == 0 && k->spec.n <= KEPT_STEPS && !know_windows(k, &s)) {
		return PROM_KERNEL_REFUSED;
	}
	int present = prom_range_series(k->fn, &s, &k->spec, out, &k->scratch);
	return present < 0 ? PROM_KERNEL_REFUSED : present > 0 ? PROM_KERNEL_PRESENT : PROM_KERNEL_NONE;
}
