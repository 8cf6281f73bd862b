#include "buckets.h"

#include <float.h>

// Differences of counts below this share are rounding.
#define TOLERANCE 1e-12

// Adds up buckets of one bound. Returns how many remain.
static uint32_t coalesce(agg_bucket *b, uint32_t n) {
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
static bool make_monotonic(agg_bucket *b, uint32_t n) {
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
static uint32_t reach(const agg_bucket *b, uint32_t n, double rank) {
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

double agg_bucket_quantile(double q, agg_bucket *b, uint32_t n, bool *forced) {
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
