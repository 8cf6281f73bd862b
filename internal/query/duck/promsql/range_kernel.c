// A kernel as Go calls it.
#include "range_kernel.h"

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
	k->series.budget = k->scratch.budget = k->spec.budget;
	return k;
}

void prom_kernel_close(prom_kernel *k) {
	prom_scratch_free(&k->series);
	prom_scratch_free(&k->scratch);
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

// Copies the samples that are no stale markers, of which there are kept, into the kernel's memory. false: refused.
static bool drop_stale(prom_kernel *k, const int64_t **ts, const double **v, uint32_t n, uint32_t kept) {
	// One more place, for what is written where a marker would be.
	int64_t *to_ts = prom_scratch_take(&k->series, ((size_t)kept + 1) * (sizeof(int64_t) + sizeof(double)));
	if (to_ts == NULL) {
		return false;
	}
	double *to_v = (double *)(to_ts + kept + 1);
	for (uint32_t i = 0, at = 0; i < n; i++) {
		to_ts[at] = (*ts)[i];
		to_v[at] = (*v)[i];
		at += !prom_is_absent((*v)[i]);
	}
	*ts = to_ts;
	*v = to_v;
	return true;
}

int prom_kernel_eval(prom_kernel *k, const int64_t *ts, const double *v, uint32_t n, double *out) {
	if (prom_cancelled(k->spec.budget)) {
		return PROM_KERNEL_CANCELLED;
	}
	uint32_t stale = prom_range_sees_stale(k->fn) ? 0 : count_stale(v, n);
	if (stale > 0 && stale < n && !drop_stale(k, &ts, &v, n, n - stale)) {
		return PROM_KERNEL_REFUSED;
	}
	if (stale == n) { // no sample is left, or there was none
		for (int64_t step = 0; step < k->spec.n; step++) {
			out[step] = prom_absent_value();
		}
		return PROM_KERNEL_NONE;
	}
	int present = prom_range_run(k->fn, ts, v, n - stale, &k->spec, out, &k->scratch);
	return present < 0 ? PROM_KERNEL_REFUSED : present > 0 ? PROM_KERNEL_PRESENT : PROM_KERNEL_NONE;
}
