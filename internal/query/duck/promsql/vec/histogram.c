// prom_histogram_quantile: the aggregate over the buckets of one classic histogram.
#include "rows.h"

#include <float.h>
#include <stdio.h>

typedef struct {
	double le, count;
} bucket;

// Differences of counts below this share are rounding.
#define TOLERANCE 1e-12

// Adds up buckets of one bound. Returns how many remain.
static uint32_t coalesce(bucket *b, uint32_t n) {
	uint32_t last = 0;
	for (uint32_t i = 1; i < n; i++) {
		if (b[i].le == b[last].le) {
			b[last].count += b[i].count;
		} else {
			b[++last] = b[i];
		}
	}
	return last + 1;
}

// almost.Equal of upstream, for values that are no stale markers.
static bool almost_equal(double a, double b) {
	if ((a != a && b != b) || a == b) {
		return true;
	}
	double sum = fabs(a) + fabs(b), diff = fabs(a - b);
	if (a == 0 || b == 0 || sum < DBL_MIN) {
		return diff < TOLERANCE * DBL_MIN;
	}
	return diff / (sum > DBL_MAX ? DBL_MAX : sum) < TOLERANCE;
}

// Raises counts that are below an earlier one. Returns whether a raise exceeded rounding.
static bool make_monotonic(bucket *b, uint32_t n) {
	bool forced = false;
	double before = b[0].count;
	for (uint32_t i = 1; i < n; i++) {
		double count = b[i].count;
		if (count == before) {
			continue;
		}
		bool same = almost_equal(before, count);
		if (same || count < before) {
			b[i].count = before;
			forced |= !same;
			continue;
		}
		before = count;
	}
	return forced;
}

// The first of n buckets whose count reaches rank; n if none does. The search halves exactly as
// Go's sort.Search does, because NaN counts have no order.
static uint32_t reach(const bucket *b, uint32_t n, double rank) {
	uint32_t lo = 0, hi = n;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		if (b[mid].count >= rank) {
			hi = mid;
		} else {
			lo = mid + 1;
		}
	}
	return lo;
}

// The quantile q of n > 0 buckets, which ascend by le, have no NaN bound, and are modified:
// BucketQuantile of Prometheus v0.315.0. Sets *forced if a count was raised by more than rounding
// explains.
static double bucket_quantile(double q, bucket *b, uint32_t n, bool *forced) {
	if (q != q) {
		return NAN;
	}
	if (q < 0 || q > 1) {
		return q < 0 ? -INFINITY : INFINITY;
	}
	if (b[n - 1].le != INFINITY) {
		return NAN;
	}
	n = coalesce(b, n);
	*forced |= make_monotonic(b, n);
	double all = b[n - 1].count;
	if (n < 2 || all == 0) {
		return NAN;
	}
	double rank = q * all;
	uint32_t at = reach(b, n - 1, rank);
	if (at == n - 1) {
		return b[n - 2].le;
	}
	if (at == 0 && b[0].le <= 0) {
		return b[0].le;
	}
	double from = 0, count = b[at].count;
	if (at > 0) {
		from = b[at - 1].le;
		count -= b[at - 1].count;
		rank -= b[at - 1].count;
	}
	return from + (b[at].le - from) * (rank / count);
}

typedef struct {
	agg_rows rows; // first, see agg_rows_destroy; le is the bucket's bound
	agg_row phi;   // one more row, the quantile asked for at each step; without values as long as there are no rows
} state;

static void destroy(duckdb_aggregate_state *states, idx_t count) {
	for (idx_t i = 0; i < count; i++) {
		state *s = (state *)states[i];
		prom_free(s->phi.v);
		s->phi.v = NULL;
	}
	agg_rows_destroy(states, count);
}

static bool add(void *state_, const void *extra, const vec_row *row, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *s = state_;
	if (row->le != row->le) {
		snprintf(err, PROM_ERROR_BYTES, "aggregate buckets: an upper bound is NaN, which has no place among the others");
		return false;
	}
	if (s->phi.v == NULL) {
		s->phi = (agg_row){.n = row->phi.n, .v = prom_alloc(row->spec->budget, sizeof(double) * row->phi.n)};
		if (s->phi.v == NULL) {
			return prom_memory_error(row->spec->budget, err);
		}
		memcpy(s->phi.v, row->phi.v, sizeof(double) * row->phi.n);
	}
	return agg_rows_add(&s->rows, row, err);
}

static bool move(void *from, void *to, const void *extra, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *a = from, *b = to;
	if (b->phi.v == NULL) {
		b->phi = a->phi;
		a->phi.v = NULL;
	}
	return agg_rows_move(&a->rows, &b->rows, err);
}

// The steps of a state's result: 0 if it has none or the lengths do not fit.
static uint32_t steps_of(const void *state_) {
	const state *s = state_;
	return s->rows.count == 0 ? 0 : vec_common(s->rows.n, s->phi.n);
}

bool agg_rows_histogram_quantile(agg_rows *r, const agg_row *phi, double *out, bool *any, bool *forced, char err[PROM_ERROR_BYTES]) {
	uint32_t steps = vec_common(r->n, phi->n), count = r->count;
	if (steps == 0) {
		snprintf(err, PROM_ERROR_BYTES, "aggregate buckets: lists of %u and %u values in one group", r->n, phi->n);
		return false;
	}
	bucket *buckets = agg_rows_scratch(r, count, sizeof *buckets, err);
	if (buckets == NULL || agg_rows_cancelled(r, err)) {
		prom_free(buckets);
		return false;
	}
	agg_rows_by_bound(r);
	for (uint32_t k = 0; k < steps; k++) {
		uint32_t n = 0;
		for (uint32_t i = 0; i < count; i++) {
			double v = agg_row_at(&r->rows[i], k);
			buckets[n] = (bucket){r->rows[i].le, v};
			n += !prom_is_absent(v);
		}
		double q = agg_row_at(phi, k);
		bool here = n > 0 && !prom_is_absent(q);
		out[k] = here ? bucket_quantile(q, buckets, n, forced) : prom_absent_value();
		*any |= here;
	}
	prom_free(buckets);
	return true;
}

static bool finish(void *state_, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *s = state_;
	bool any = false, forced = false;
	bool ok = s->rows.count == 0 || agg_rows_histogram_quantile(&s->rows, &s->phi, vec_out_next(out), &any, &forced, err);
	if (forced) {
		prom_budget_set_forced(s->rows.budget);
	}
	vec_out_put(out, row, steps_of(s), any);
	return ok;
}

const vec_aggregate agg_table_histogram[] = {
    {.name = "prom_histogram_quantile", .parameters = {VEC_LIST, VEC_DOUBLE, VEC_LIST}, .result = VEC_LIST, .spec = true, .size = sizeof(state),
     .destroy = destroy, .add = add, .move = move, .steps = steps_of, .finish = finish},
    {0},
};
