// The table of range functions, and the way into their kernels.
#include "range_window.h"

enum kernel { PICK, FLIPS, RATE, EXTREME, SUM, TREND, ORDER };

static const struct {
	const char *name;
	enum kernel kernel;
	uint32_t parameters; // spec keys beside the grid and range
} functions[PROM_RANGE_FUNCTIONS] = {
    [PROM_INSTANT] = {"instant", PICK, 0},
    [PROM_TIMESTAMP] = {"timestamp", PICK, 0},
    [PROM_RATE] = {"rate", RATE, 0},
    [PROM_INCREASE] = {"increase", RATE, 0},
    [PROM_DELTA] = {"delta", RATE, 0},
    [PROM_IRATE] = {"irate", PICK, 0},
    [PROM_IDELTA] = {"idelta", PICK, 0},
    [PROM_DERIV] = {"deriv", TREND, 0},
    [PROM_PREDICT_LINEAR] = {"predict_linear", TREND, PROM_KEY_DUR},
    [PROM_CHANGES] = {"changes", FLIPS, 0},
    [PROM_RESETS] = {"resets", FLIPS, 0},
    [PROM_AVG_OVER_TIME] = {"avg_over_time", SUM, 0},
    [PROM_MIN_OVER_TIME] = {"min_over_time", EXTREME, 0},
    [PROM_MAX_OVER_TIME] = {"max_over_time", EXTREME, 0},
    [PROM_SUM_OVER_TIME] = {"sum_over_time", SUM, 0},
    [PROM_COUNT_OVER_TIME] = {"count_over_time", PICK, 0},
    [PROM_LAST_OVER_TIME] = {"last_over_time", PICK, 0},
    [PROM_FIRST_OVER_TIME] = {"first_over_time", PICK, 0},
    [PROM_PRESENT_OVER_TIME] = {"present_over_time", PICK, 0},
    [PROM_STDDEV_OVER_TIME] = {"stddev_over_time", SUM, 0},
    [PROM_STDVAR_OVER_TIME] = {"stdvar_over_time", SUM, 0},
    [PROM_MAD_OVER_TIME] = {"mad_over_time", ORDER, 0},
    [PROM_QUANTILE_OVER_TIME] = {"quantile_over_time", ORDER, PROM_KEY_PHI},
    [PROM_TS_OF_MIN_OVER_TIME] = {"ts_of_min_over_time", EXTREME, 0},
    [PROM_TS_OF_MAX_OVER_TIME] = {"ts_of_max_over_time", EXTREME, 0},
    [PROM_TS_OF_FIRST_OVER_TIME] = {"ts_of_first_over_time", PICK, 0},
    [PROM_TS_OF_LAST_OVER_TIME] = {"ts_of_last_over_time", PICK, 0},
    [PROM_DOUBLE_EXPONENTIAL_SMOOTHING] = {"double_exponential_smoothing", TREND, PROM_KEY_SF | PROM_KEY_TF},
};

const char *prom_range_name(int fn) { return fn >= 0 && fn < PROM_RANGE_FUNCTIONS ? functions[fn].name : NULL; }

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

void *prom_scratch_take(prom_scratch *s, size_t n) {
	if (n <= s->bytes) {
		return s->mem;
	}
	prom_free(s->mem);
	s->bytes = 0;
	s->mem = prom_alloc(s->budget, n + n / 2);
	if (s->mem != NULL) {
		s->bytes = n + n / 2;
	}
	return s->mem;
}

void prom_scratch_free(prom_scratch *s) {
	prom_free(s->mem);
	s->mem = NULL;
	s->bytes = 0;
}

int prom_range_run(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, double *out, prom_scratch *scratch) {
	const series s = {.ts = ts, .v = v, .n = n};
	return prom_range_series(fn, &s, spec, out, scratch);
}

int prom_range_series(int fn, const series *s, const prom_spec *spec, double *out, prom_scratch *scratch) {
	switch (functions[fn].kernel) {
	case PICK:
		return prom_range_pick(fn, s, spec, out);
	case FLIPS:
		return prom_range_flips(fn, s, spec, out, scratch);
	case RATE:
		return prom_range_rate(fn, s, spec, out, scratch);
	case EXTREME:
		return prom_range_extreme(fn, s, spec, out, scratch);
	case SUM:
		return prom_range_sum(fn, s, spec, out, scratch);
	case TREND:
		return prom_range_trend(fn, s, spec, out);
	case ORDER:
		return prom_range_order(fn, s, spec, out, scratch);
	}
	return -1;
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
