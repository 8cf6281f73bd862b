// changes and resets: how many neighbours of a window differ, or fall.
#include "window.h"

// upto[i] is the number of flips among samples 0..i, so a window has upto[last] - upto[first]
// flips.
PROM_INLINE double flips(const series *s, const prom_spec *p, window w, void *state) {
	(void)s, (void)p;
	const uint32_t *upto = state;
	return upto[w.hi - 1] - upto[w.lo];
}

int prom_range_flips(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	uint32_t *upto = prom_scratch_take(scratch, ((size_t)s->n + 1) * sizeof *upto);
	if (upto == NULL) {
		return -1;
	}
	const double *v = s->v;
	upto[0] = 0;
	if (fn == PROM_RESETS) {
		for (uint32_t i = 1; i < s->n; i++) {
			upto[i] = upto[i - 1] + (v[i] < v[i - 1]);
		}
	} else {
		for (uint32_t i = 1; i < s->n; i++) { // NaN after NaN is no change
			upto[i] = upto[i - 1] + (v[i] != v[i - 1] && (v[i] == v[i] || v[i - 1] == v[i - 1]));
		}
	}
	return each_window(s, p, out, 1, flips, upto);
}
