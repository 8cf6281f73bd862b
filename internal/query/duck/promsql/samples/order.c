// Sorts the samples of a series by time. Of equal times the sample of the highest rank counts, as
// the Go package internal/live defines it; the statement leaves out deleted samples. Runs are
// nearly always sorted and disjoint in time.
#include "samples.h"

#include <stdlib.h>

// An ascending stretch of a run.
typedef struct {
	uint64_t rank;
	int64_t base, first, last; // ms
	const uint32_t *at;
	const double *v;
	uint32_t n, arrival;
} piece;

static int by_time(const void *x, const void *y) {
	const piece *a = x, *b = y;
	return (a->first > b->first) - (a->first < b->first);
}

static int by_rank(const void *x, const void *y) {
	const piece *a = x, *b = y;
	if (a->rank != b->rank) {
		return a->rank < b->rank ? -1 : 1;
	}
	return (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

// The end of the ascending stretch of a run that begins at i.
static uint32_t stretch(const samples_run *r, uint32_t i) {
	if (r->sorted) {
		return r->n;
	}
	for (i++; i < r->n && r->at[i] > r->at[i - 1]; i++) {
	}
	return i;
}

static uint64_t count_pieces(const samples_state *s) {
	uint64_t n = 0;
	for (const samples_run *r = s->head; r != NULL; r = r->next) {
		for (uint32_t i = 0; i < r->n; i = stretch(r, i)) {
			n++;
		}
	}
	return n;
}

static void list_pieces(const samples_state *s, piece *p) {
	uint32_t arrival = 0;
	for (const samples_run *r = s->head; r != NULL; r = r->next) {
		for (uint32_t i = 0, e; i < r->n; i = e) {
			e = stretch(r, i);
			*p++ = (piece){r->rank, r->base, r->base + r->at[i], r->base + r->at[e - 1], r->at + i, r->v + i, e - i, arrival++};
		}
	}
}

static bool follow_one_another(const piece *p, uint64_t n) {
	for (uint64_t i = 1; i < n; i++) {
		if (p[i].first <= p[i - 1].last) {
			return false;
		}
	}
	return true;
}

static void expand(int64_t *restrict ts, const uint32_t *restrict at, uint32_t n, int64_t base) {
	for (uint32_t i = 0; i < n; i++) {
		ts[i] = base + at[i];
	}
}

static void copy_piece(int64_t *ts, double *v, const piece *p) {
	expand(ts, p->at, p->n, p->base);
	memcpy(v, p->v, p->n * sizeof *v);
}

typedef struct {
	int64_t *ts;
	double *v;
} samples;

// Merges two neighbours a..b-1 and b..c-1 of from to the end o of to and returns the new end. Of
// two samples with equal times the right neighbour's stays.
static uint32_t merge_two(samples to, uint32_t o, samples from, uint32_t a, uint32_t b, uint32_t c) {
	uint32_t i = a, j = b;
	while (i < b && j < c) {
		bool right = from.ts[j] <= from.ts[i];
		i += right && from.ts[j] == from.ts[i];
		uint32_t k = right ? j++ : i++;
		to.ts[o] = from.ts[k];
		to.v[o++] = from.v[k];
	}
	uint32_t rest = i < b ? i : j, end = i < b ? b : c;
	memcpy(to.ts + o, from.ts + rest, (end - rest) * sizeof *to.ts);
	memcpy(to.v + o, from.v + rest, (end - rest) * sizeof *to.v);
	return o + (end - rest);
}

// Merges neighbours until one stretch is left. Stretch i of from begins at begin[i]; begin[count]
// is the end. Every stretch's ranks are not above those of the next one, so that the right one of
// two neighbours is always the newer. Returns the buffer that holds the result.
static samples merge_all(samples from, samples to, uint32_t *begin, uint64_t count, uint32_t *n) {
	while (count > 1) {
		uint32_t o = 0;
		uint64_t made = 0;
		for (uint64_t i = 0; i < count; i += 2) {
			uint32_t a = begin[i], b = begin[i + 1], c = i + 1 < count ? begin[i + 2] : b;
			begin[made++] = o;
			o = merge_two(to, o, from, a, b, c);
		}
		begin[made] = o;
		count = made;
		samples s = from;
		from = to;
		to = s;
	}
	*n = begin[1];
	return from;
}

// Room for n samples.
static bool take_samples(prom_scratch *scratch, uint64_t n, samples *s) {
	s->ts = prom_scratch_take(scratch, n * (sizeof *s->ts + sizeof *s->v));
	s->v = (double *)(s->ts + n);
	return s->ts != NULL;
}

static bool put_in_order(const samples_state *s, samples_order *o, samples *out, uint32_t *n) {
	uint64_t count = count_pieces(s);
	piece *p = prom_scratch_take(&o->pieces, count * sizeof *p + (count + 1) * sizeof(uint32_t));
	if (p == NULL || !take_samples(&o->series, s->n, out)) {
		return false;
	}
	list_pieces(s, p);
	qsort(p, count, sizeof *p, by_time);
	bool merge = !follow_one_another(p, count);
	if (merge) {
		qsort(p, count, sizeof *p, by_rank);
	}
	uint32_t *begin = (uint32_t *)(p + count), at = 0;
	for (uint64_t i = 0; i < count; i++) {
		copy_piece(out->ts + at, out->v + at, &p[i]);
		begin[i] = at;
		at += p[i].n;
	}
	begin[count] = at;
	*n = at;
	if (merge) {
		samples other;
		if (!take_samples(&o->merged, s->n, &other)) {
			return false;
		}
		*out = merge_all(*out, other, begin, count, n);
	}
	return true;
}

static bool has_stale(const double *v, uint32_t n) {
	uint64_t stale = 0;
	for (uint32_t i = 0; i < n; i++) {
		stale |= prom_is_absent(v[i]);
	}
	return stale != 0;
}

// Drops stale markers. from may be where to is.
static uint32_t drop_stale(samples to, samples from, uint32_t n) {
	uint32_t kept = 0;
	for (uint32_t i = 0; i < n; i++) {
		int64_t t = from.ts[i];
		double v = from.v[i];
		to.ts[kept] = t;
		to.v[kept] = v;
		kept += !prom_is_absent(v);
	}
	return kept;
}

bool samples_sorted(const samples_state *s, samples_order *o, bool keep_stale, const int64_t **ts, const double **v, uint32_t *n) {
	samples all;
	const samples_run *only = s->head;
	bool in_run = only->next == NULL && only->sorted; // values stay where they are
	if (in_run) {
		if (!take_samples(&o->series, s->n, &all)) {
			return false;
		}
		*n = only->n;
		expand(all.ts, only->at, *n, only->base);
	} else if (!put_in_order(s, o, &all, n)) {
		return false;
	}
	*ts = all.ts;
	*v = in_run ? only->v : all.v;
	if (!keep_stale && has_stale(*v, *n)) {
		*n = drop_stale(all, (samples){all.ts, (double *)*v}, *n);
		*v = all.v;
	}
	return true;
}
