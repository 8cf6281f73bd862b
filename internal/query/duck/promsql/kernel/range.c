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

uint32_t prom_count_stale(const double *v, uint32_t n) {
	uint32_t stale = 0;
	for (uint32_t i = 0; i < n; i++) {
		stale += prom_is_absent(v[i]);
	}
	return stale;
}

bool prom_drop_stale(prom_scratch *scratch, const int64_t **ts, const double **v, uint32_t n, uint32_t kept) {
	// One more element: the loop also writes stale markers, one past the end.
	int64_t *to_ts = prom_scratch_take(scratch, ((size_t)kept + 1) * (sizeof(int64_t) + sizeof(double)));
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

int prom_range_eval(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out) {
	prom_scratch scratch = {.budget = spec->budget}, copy = {.budget = spec->budget};
	uint32_t stale = prom_range_sees_stale(fn) ? 0 : prom_count_stale(v, n);
	bool ok = stale == 0 || prom_drop_stale(&copy, &ts, &v, n, n - stale);
	int r = ok ? prom_range_run(fn, ts, v, n - stale, spec, out, &scratch) : -1;
	prom_scratch_free(&copy);
	prom_scratch_free(&scratch);
	return r;
}
