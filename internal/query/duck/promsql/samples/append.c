// Gathering samples into runs.
#include "samples.h"

#include <float.h>

// Times of a run lie less than this many µs after its base, which is half as much before its first
// sample.
#define REACH (INT64_C(1000) << 32)

// Runs of fewer samples than this get room for more.
#define SMALL 256
#define SMALLEST 16

// The base of a run whose first sample is at the time us.
static int64_t base_of(int64_t us) {
	const int64_t earliest = INT64_MIN / 1000;
	int64_t ms = us / 1000 - (us % 1000 < 0) - REACH / 2000;
	return ms < earliest ? earliest : ms;
}

// Adds an empty run that begins at the time us with room for want samples. Many samples get exactly
// their room, because such a stretch mostly ends its series; few get as much as the series already
// has, which keeps the number of runs small.
static samples_run *new_run(samples_state *s, uint64_t rank, int64_t us, uint64_t want) {
	uint64_t cap = want;
	if (want < SMALL) {
		cap = s->n > cap ? s->n : cap;
		cap = cap > SMALL ? SMALL : cap < SMALLEST ? SMALLEST : cap;
	}
	samples_run *r = prom_alloc(s->spec->budget, sizeof *r + cap * (sizeof(double) + sizeof(uint32_t)));
	if (r == NULL) {
		return NULL;
	}
	r->next = NULL;
	r->rank = rank;
	r->base = base_of(us);
	r->n = 0;
	r->cap = (uint32_t)cap;
	r->sorted = true;
	r->at = (uint32_t *)(r->v + cap);
	if (s->tail == NULL) {
		s->head = r;
	} else {
		s->tail->next = r;
	}
	s->tail = r;
	return r;
}

// Whole series often have the divisor 1; skipping the division is cheaper.
static bool all_one(const double *v_div, uint64_t n) {
	uint64_t other = 0;
	for (uint64_t i = 0; i < n; i++) {
		other |= v_div[i] != 1;
	}
	return other == 0;
}

static void decode(double *restrict v, const int64_t *restrict v_int, const double *restrict v_div, uint64_t n) {
	if (all_one(v_div, n)) {
		for (uint64_t i = 0; i < n; i++) {
			v[i] = (double)v_int[i];
		}
		return;
	}
	uint64_t odd = 0;
	for (uint64_t i = 0; i < n; i++) {
		v[i] = (double)v_int[i] / v_div[i];
		odd |= !(v_div[i] <= DBL_MAX);
	}
	for (uint64_t i = 0; odd && i < n; i++) {
		v[i] = prom_decode(v_int[i], v_div[i]);
	}
}

// Copies rows i..j-1, which are of the run's rank, within its reach and fewer than its room, and
// ascend.
static void fill(samples_run *r, const samples_rows *rows, uint64_t i, uint64_t j) {
	const int64_t *ts = rows->ts;
	uint32_t *restrict at = r->at + r->n;
	int64_t base = r->base * 1000;
	for (uint64_t k = 0; k < j - i; k++) {
		at[k] = (uint32_t)((uint64_t)(ts[i + k] - base) / 1000);
	}
	if (rows->value != NULL) {
		memcpy(r->v + r->n, rows->value + i, (j - i) * sizeof(double));
	} else {
		decode(r->v + r->n, rows->v_int + i, rows->v_div + i, j - i);
	}
	bool ascend = r->n == 0 || at[0] > r->at[r->n - 1];
	for (uint64_t k = 1; k < j - i; k++) { // times that differ by less than a millisecond are equal ones
		ascend &= at[k] > at[k - 1];
	}
	r->sorted &= ascend;
	r->n += (uint32_t)(j - i);
}

static bool within(const samples_run *r, int64_t us) {
	int64_t since;
	return !__builtin_sub_overflow(us, r->base * 1000, &since) && since >= 0 && since < REACH;
}

bool samples_append(samples_state *s, const samples_rows *rows, uint64_t i, uint64_t j) {
	while (i < j) {
		// Rows of one rank with ascending times: all are within reach if the first and the last one
		// are.
		uint64_t e = i + 1;
		while (e < j && rows->rank[e] == rows->rank[i] && rows->ts[e] > rows->ts[e - 1]) {
			e++;
		}
		samples_run *r = s->tail;
		if (r == NULL || r->n == r->cap || r->rank != rows->rank[i] || !within(r, rows->ts[i])) {
			r = new_run(s, rows->rank[i], rows->ts[i], e - i);
			if (r == NULL) {
				return false;
			}
		}
		uint64_t room = i + (r->cap - r->n);
		e = e < room ? e : room;
		while (!within(r, rows->ts[e - 1])) {
			e--;
		}
		fill(r, rows, i, e);
		s->n += e - i;
		i = e;
	}
	return true;
}

void samples_take(samples_state *dst, samples_state *src) {
	if (src->head == NULL) {
		return;
	}
	if (dst->spec == NULL) {
		samples_state empty = *dst;
		*dst = *src;
		*src = empty;
		return;
	}
	if (dst->tail == NULL) {
		dst->head = src->head;
	} else {
		dst->tail->next = src->head;
	}
	dst->tail = src->tail;
	dst->n += src->n;
	src->head = src->tail = NULL;
	src->n = 0;
}

void samples_clear(samples_state *s) {
	for (samples_run *r = s->head, *next; r != NULL; r = next) {
		next = r->next;
		prom_free(r);
	}
	s->head = s->tail = NULL;
	s->n = 0;
}
