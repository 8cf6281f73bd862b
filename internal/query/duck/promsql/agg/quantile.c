// prom_quantile: the quantile of all series at each step.
#include "rows.h"

#include "../kernel/select.h"

#define BLOCK 8 // steps that are gathered at once: a cache line of each series
#define NEGATIVE_ZERO (UINT64_C(1) << 63)

typedef struct {
	agg_rows rows; // first, see agg_rows_destroy
	double phi;
} state;

static bool add(void *state_, const void *extra, uint32_t i, vec_list l, const prom_spec *spec, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *s = state_;
	s->phi = spec->phi;
	return agg_rows_add(&s->rows, (agg_row){.i = i, .n = l.n, .v = (double *)(uintptr_t)l.v}, spec->budget, err);
}

static bool move(void *from, void *to, const void *extra, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *a = from, *b = to;
	if (a->rows.count > 0) {
		b->phi = a->phi;
	}
	return agg_rows_move(&a->rows, &b->rows, err);
}

// The values of one step in the order of the series, NaNs left out but counted.
typedef struct {
	double *values;
	uint32_t n, nans;
	bool negative_zero, zero;
} step;

// Returns element at of the sorted values, which begin with the NaNs. Moves smaller values before
// it.
static double nth(const step *s, int64_t *keys, bool sorted, uint32_t at) {
	if (at < s->nans) {
		return NAN;
	}
	at -= s->nans;
	if (sorted) {
		return s->values[at];
	}
	select_kth(keys, s->n, at);
	return value_of(keys[at]);
}

// The least value after at, given that nth was asked for at.
static double next(const step *s, const int64_t *keys, bool sorted, uint32_t at) {
	if (at + 1 < s->nans) {
		return NAN;
	}
	at = at + 1 - s->nans;
	if (sorted) {
		return s->values[at];
	}
	int64_t least = keys[at];
	for (uint32_t i = at + 1; i < s->n; i++) {
		least = keys[i] < least ? keys[i] : least;
	}
	return value_of(least);
}

// The quantile of a step that has values: promql's quantile of v0.315.0. If zeros of both signs are
// present, their order is that of Go's sort.
static double quantile(double phi, step *s, int64_t *keys) {
	if (phi != phi) {
		return NAN;
	}
	if (phi < 0 || phi > 1) {
		return phi < 0 ? -INFINITY : INFINITY;
	}
	bool sorted = s->negative_zero && s->zero;
	if (sorted) {
		promGoSort(s->values, s->n);
	}
	for (uint32_t i = 0; i < s->n && !sorted; i++) {
		keys[i] = key_of(s->values[i]);
	}
	double n = (double)s->n + s->nans, rank = phi * (n - 1), low = fmax(0, floor(rank)), weight = rank - floor(rank);
	uint32_t lower = (uint32_t)low;
	double a = nth(s, keys, sorted, lower), b = low + 1 < n ? next(s, keys, sorted, lower) : a;
	return a * (1 - weight) + b * weight;
}

static void gather(const agg_rows *rows, uint32_t from, uint32_t steps, step *to) {
	for (uint32_t r = 0; r < rows->count; r++) {
		const agg_row *row = &rows->rows[r];
		for (uint32_t j = 0; j < steps; j++) {
			double v = agg_row_at(row, from + j);
			if (prom_is_absent(v)) {
				continue;
			}
			to[j].values[to[j].n] = v;
			to[j].n += v == v;
			to[j].nans += v != v;
			to[j].negative_zero |= prom_bits(v) == NEGATIVE_ZERO;
			to[j].zero |= prom_bits(v) == 0;
		}
	}
}

bool agg_rows_quantile(agg_rows *r, double phi, double *out, bool *any, char err[PROM_ERROR_BYTES]) {
	size_t count = r->count;
	double *values = agg_rows_scratch(r, BLOCK * count, sizeof *values, err);
	int64_t *keys = values == NULL ? NULL : agg_rows_scratch(r, count, sizeof *keys, err);
	bool ok = keys != NULL;
	agg_rows_by_ordinal(r);
	for (uint32_t k = 0; ok && k < r->n; k += BLOCK) {
		uint32_t steps = r->n - k < BLOCK ? r->n - k : BLOCK;
		step block[BLOCK] = {0};
		for (uint32_t j = 0; j < steps; j++) {
			block[j].values = values + j * count;
		}
		gather(r, k, steps, block);
		for (uint32_t j = 0; j < steps; j++) {
			bool here = block[j].n + block[j].nans > 0;
			out[k + j] = here ? quantile(phi, &block[j], keys) : prom_absent_value();
			*any |= here;
		}
		ok = !agg_rows_cancelled(r, err);
	}
	prom_free(values);
	prom_free(keys);
	return ok;
}

static uint32_t steps(const void *s) { return ((const state *)s)->rows.n; }

static bool finish(void *state_, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *s = state_;
	bool any = false, ok = s->rows.count == 0 || agg_rows_quantile(&s->rows, s->phi, vec_out_next(out), &any, err);
	vec_out_put(out, row, s->rows.n, any);
	return ok;
}

const vec_aggregate agg_table_quantile[] = {
    {.name = "prom_quantile", .parameters = {VEC_UINTEGER, VEC_LIST, VEC_VARCHAR}, .result = VEC_LIST, .size = sizeof(state),
     .destroy = agg_rows_destroy, .keys = PROM_KEY_PHI, .add = add, .move = move, .steps = steps, .finish = finish},
    {0},
};
