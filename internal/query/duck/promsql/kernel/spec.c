// Spec strings: "start=0 step=15000 n=480 range=300000".
#include "spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Longest text of a value, its ending zero included: more than any integer or %x double needs.
#define VALUE_BYTES 64

typedef struct {
	const char *name;
	uint32_t bit;
	size_t at;   // where in prom_spec the value goes
	bool number; // a double, else an int64_t
} key;

static const key keys[] = {
    {"start", PROM_KEY_START, offsetof(prom_spec, start), false}, {"step", PROM_KEY_STEP, offsetof(prom_spec, step), false},
    {"n", PROM_KEY_N, offsetof(prom_spec, n), false},             {"range", PROM_KEY_RANGE, offsetof(prom_spec, range), false},
    {"shift", PROM_KEY_SHIFT, offsetof(prom_spec, shift), false}, {"phi", PROM_KEY_PHI, offsetof(prom_spec, phi), true},
    {"sf", PROM_KEY_SF, offsetof(prom_spec, sf), true},           {"tf", PROM_KEY_TF, offsetof(prom_spec, tf), true},
    {"dur", PROM_KEY_DUR, offsetof(prom_spec, dur), true},        {"k", PROM_KEY_K, offsetof(prom_spec, k), false},
    {"offset", PROM_KEY_OFFSET, offsetof(prom_spec, offset), false},
    {"budget", PROM_KEY_BUDGET, offsetof(prom_spec, budget_id), false},
};

static const key *find_key(const char *name, size_t len) {
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (strlen(keys[i].name) == len && memcmp(keys[i].name, name, len) == 0) {
			return &keys[i];
		}
	}
	return NULL;
}

// A text that is not to flood an error message.
static int shown(size_t len) { return len > 48 ? 48 : (int)len; }

// Reads one "key=value" of len bytes into s.
static bool read_pair(prom_spec *s, const char *pair, size_t len, uint32_t allowed, char err[PROM_ERROR_BYTES]) {
	const char *eq = memchr(pair, '=', len);
	if (eq == NULL) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: \"%.*s\" is no key=value", shown(len), pair);
		return false;
	}
	const key *k = find_key(pair, (size_t)(eq - pair));
	if (k == NULL || !(allowed & k->bit)) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: unknown key \"%.*s\"", shown((size_t)(eq - pair)), pair);
		return false;
	}
	if (s->keys & k->bit) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: key %s is there twice", k->name);
		return false;
	}
	s->keys |= k->bit;
	size_t n = len - (size_t)(eq + 1 - pair);
	char text[VALUE_BYTES];
	bool ok = n > 0 && n < sizeof text && ((unsigned char)eq[1] > ' ');
	if (ok) {
		memcpy(text, eq + 1, n);
		text[n] = 0;
		char *end;
		errno = 0;
		if (k->number) {
			double v = strtod(text, &end); // out of range gives ±Inf or the nearest double, as intended
			memcpy((char *)s + k->at, &v, sizeof v);
		} else {
			int64_t v = strtoll(text, &end, 10);
			memcpy((char *)s + k->at, &v, sizeof v);
			ok = errno == 0;
		}
		ok = ok && end == text + n;
	}
	if (!ok) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: \"%.*s\" is no value of %s", shown(n), eq + 1, k->name);
	}
	return ok;
}

// Returns whether a time of the grid or the start of its first window overflows.
static bool grid_overflows(const prom_spec *s) {
	int64_t t;
	return __builtin_mul_overflow(s->n - 1, s->step, &t) || __builtin_add_overflow(s->start, t, &t) ||
	       __builtin_add_overflow(t, s->shift, &t) || __builtin_add_overflow(s->start, s->shift, &t) ||
	       __builtin_sub_overflow(s->start, s->range, &t) || __builtin_sub_overflow(s->start, s->step, &t);
}

const char *prom_spec_wrong(const prom_spec *s) {
	if ((s->keys & PROM_KEY_STEP) && s->step <= 0) {
		return "step is not positive";
	}
	if ((s->keys & PROM_KEY_N) && (s->n <= 0 || s->n > PROM_MAX_STEPS)) {
		return "n is not between 1 and 16777216";
	}
	if ((s->keys & PROM_KEY_RANGE) && s->range <= 0) {
		return "range is not positive";
	}
	if ((s->keys & PROM_KEYS_GRID) == PROM_KEYS_GRID && grid_overflows(s)) {
		return "a time of the grid is beyond 64 bits";
	}
	// Upstream refuses these factors too, and accepts NaN.
	if ((s->keys & PROM_KEY_SF) && (s->sf <= 0 || s->sf >= 1)) {
		return "sf is not between 0 and 1";
	}
	if ((s->keys & PROM_KEY_TF) && (s->tf <= 0 || s->tf >= 1)) {
		return "tf is not between 0 and 1";
	}
	return NULL;
}

bool prom_windows_fit(const prom_spec *s, int64_t samples, char err[PROM_ERROR_BYTES]) {
	if (samples <= PROM_MAX_WINDOWED / s->n) {
		return true;
	}
	snprintf(err, PROM_ERROR_BYTES, "evaluate windows: %lld of up to %lld samples have more than %lld together", (long long)s->n, (long long)samples,
	         (long long)PROM_MAX_WINDOWED);
	return false;
}

static bool complete(const prom_spec *s, uint32_t required, char err[PROM_ERROR_BYTES]) {
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (required & ~s->keys & keys[i].bit) {
			snprintf(err, PROM_ERROR_BYTES, "parse spec: key %s is missing", keys[i].name);
			return false;
		}
	}
	const char *what = prom_spec_wrong(s);
	if (what != NULL) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: %s", what);
	}
	return what == NULL;
}

bool prom_spec_parse(prom_spec *s, const char *text, size_t len, uint32_t required, uint32_t optional, char err[PROM_ERROR_BYTES]) {
	*s = (prom_spec){0};
	uint32_t allowed = required | optional | PROM_KEY_SHIFT | PROM_KEY_OFFSET | PROM_KEY_BUDGET;
	for (const char *p = text, *end = text + len; p < end;) {
		const char *blank = memchr(p, ' ', (size_t)(end - p));
		size_t n = blank == NULL ? (size_t)(end - p) : (size_t)(blank - p);
		if (!read_pair(s, p, n, allowed, err)) {
			return false;
		}
		p += n;
		if (blank != NULL && ++p == end) {
			snprintf(err, PROM_ERROR_BYTES, "parse spec: it ends in a blank");
			return false;
		}
	}
	if (__builtin_sub_overflow(s->start, s->offset, &s->start) || __builtin_add_overflow(s->shift, s->offset, &s->shift)) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: the offset moves the grid beyond 64 bits");
		return false;
	}
	if (!complete(s, required, err)) {
		return false;
	}
	s->range_s = prom_range_seconds(s->range);
	s->budget = prom_budget_acquire(s->budget_id);
	if (s->budget == NULL) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: no open budget has the id %lld", (long long)s->budget_id);
		return false;
	}
	return true;
}

void prom_spec_close(prom_spec *s) {
	prom_budget_release(s->budget);
	s->budget = NULL;
}
