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

int prom_range_series(int fn, const series *s, const prom_spec *spec, double *out, prom_scratch *scratch) {
	return functions[fn].kernel(fn, s, spec, out, scratch);
}
