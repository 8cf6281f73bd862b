// The table of range functions and their evaluation.
#include "window.h"

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

int prom_range_run(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out, prom_scratch *scratch) {
	const series s = {.ts = ts, .v = v, .n = n};
	return prom_range_series(fn, &s, spec, out, scratch);
}

int prom_range_series(int fn, const series *s, const prom_spec *spec, double *out, prom_scratch *scratch) {
	return functions[fn].kernel(fn, s, spec, out, scratch);
}

// Copies the samples that are no stale markers.
static uint32_t without_stale(int64_t *ts, double *v, const int64_t *from_ts, const double *from_v, uint32_t n) {
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		ts[kept] = from_ts[i];
		v[kept] = from_v[i];
		kept += !prom_is_absent(from_v[i]);
	}
	return kept;
}

int prom_range_eval(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out) {
	prom_scratch scratch = {.budget = spec->budget};
	uint32_t stale = 0;
	for (uint32_t i = 0; i < n; i++) {
		stale += prom_is_absent(v[i]);
	}
	if (stale == 0 || prom_range_sees_stale(fn)) {
		int r = prom_range_run(fn, ts, v, n, spec, out, &scratch);
		prom_scratch_free(&scratch);
		return r;
	}
	int64_t *copy = prom_alloc(spec->budget, (size_t)n * (sizeof *ts + sizeof *v));
	if (copy == NULL) {
		return -1;
	}
	double *values = (double *)(copy + n);
	int r = prom_range_run(fn, copy, values, without_stale(copy, values, ts, v, n), spec, out, &scratch);
	prom_free(copy);
	prom_scratch_free(&scratch);
	return r;
}
