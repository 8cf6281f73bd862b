// Functions that use the first, the last, or the last two samples of a window, or only their
// number.
#include "window.h"

#define PICK(name, value) \
	PROM_INLINE double name(const series *s, const prom_spec *p, window w, void *state) { \
		(void)s, (void)p, (void)w, (void)state; \
		return value; \
	}

PICK(instant, s->v[w.hi - 1]) // a stale marker is the absent value
PICK(timestamp, prom_is_absent(s->v[w.hi - 1]) ? prom_absent_value() : (double)s->ts[w.hi - 1] / 1000)
PICK(last, s->v[w.hi - 1])
PICK(first, s->v[w.lo])
PICK(ts_of_first, (double)s->ts[w.lo] / 1000)
// Upstream takes the later one of the last float and of the last histogram, whose time is 0 if
// there is none.
PICK(ts_of_last, (double)(s->ts[w.hi - 1] > 0 ? s->ts[w.hi - 1] : 0) / 1000)
PICK(count, w.hi - w.lo)
PICK(present, 1)
PICK(idelta, s->v[w.hi - 1] - s->v[w.hi - 2])

// After a reset the increase is the last value itself.
PROM_INLINE double increase(double a, double b) { return b < a ? b : b - a; }
PICK(irate, increase(s->v[w.hi - 2], s->v[w.hi - 1]) / ((double)(s->ts[w.hi - 1] - s->ts[w.hi - 2]) / 1000))

static int any_present(const double *out, int64_t n) {
	for (int64_t k = 0; k < n; k++) {
		if (!prom_is_absent(out[k])) {
			return 1;
		}
	}
	return 0;
}

int prom_range_pick(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	(void)scratch;
	switch (fn) {
	case PROM_INSTANT:
		return each_window(s, p, out, 1, instant, NULL) && any_present(out, p->n);
	case PROM_TIMESTAMP:
		return each_window(s, p, out, 1, timestamp, NULL) && any_present(out, p->n);
	case PROM_LAST_OVER_TIME:
		return each_window(s, p, out, 1, last, NULL);
	case PROM_FIRST_OVER_TIME:
		return each_window(s, p, out, 1, first, NULL);
	case PROM_TS_OF_FIRST_OVER_TIME:
		return each_window(s, p, out, 1, ts_of_first, NULL);
	case PROM_TS_OF_LAST_OVER_TIME:
		return each_window(s, p, out, 1, ts_of_last, NULL);
	case PROM_COUNT_OVER_TIME:
		return each_window(s, p, out, 1, count, NULL);
	case PROM_PRESENT_OVER_TIME:
		return each_window(s, p, out, 1, present, NULL);
	case PROM_IDELTA:
		return each_window(s, p, out, 2, idelta, NULL);
	default: // PROM_IRATE
		return each_window(s, p, out, 2, irate, NULL);
	}
}
