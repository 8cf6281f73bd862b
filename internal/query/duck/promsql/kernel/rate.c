// rate, increase and delta: the difference over a window, corrected for counter resets and
// extrapolated to the window's ends.
#include "window.h"

// Resets of the whole series. lost[i] is what the counter lost between samples at[i]-1 and at[i].
typedef struct {
	uint32_t *at;
	double *lost;
	uint32_t n, first; // first: the earliest reset that may still be in a window
} resets;

// Upstream adds the value before every reset to the difference, one by one in the order of time.
PROM_INLINE double add_resets(double difference, window w, resets *r) {
	while (r->first < r->n && r->at[r->first] <= w.lo) {
		r->first++;
	}
	for (uint32_t i = r->first; i < r->n && r->at[i] < w.hi; i++) {
		difference += r->lost[i];
	}
	return difference;
}

// The extent of a window's samples in seconds, and the factor that extrapolates their difference to
// the window. Both are reused while the next window has as many samples at the same distances,
// which is the usual case.
typedef struct {
	int64_t before, between, after; // ms: from the window's start to its first sample, to its last one, to the window's end
	uint32_t n;
	double to_start, sampled, to_end, factor;
} reach;

// Upstream extrapolates to the window's end if that is at most 1.1 times the average distance of
// samples away, otherwise by half of that distance.
static void set_reach(reach *r) {
	r->sampled = (double)r->between / 1000;
	double average = r->sampled / (double)(r->n - 1);
	double threshold = average * 1.1;
	r->to_start = (double)r->before / 1000;
	r->to_end = (double)r->after / 1000;
	if (r->to_start >= threshold) {
		r->to_start = average / 2;
	}
	if (r->to_end >= threshold) {
		r->to_end = average / 2;
	}
}

// The factor if samples reach to_start beyond the first one; seconds is what a rate divides by.
PROM_INLINE double factor(const reach *r, double to_start, double seconds, bool rate) {
	double f = (r->sampled + to_start + r->to_end) / r->sampled;
	return rate ? f / seconds : f;
}

PROM_INLINE void reach_of(reach *r, const series *s, const prom_spec *p, window w, bool rate) {
	if (w.like_last) {
		return;
	}
	int64_t first = s->ts[w.lo], last = s->ts[w.hi - 1];
	reach x = {.before = first - (w.t - p->range), .between = last - first, .after = w.t - last, .n = w.hi - w.lo};
	if (x.before == r->before && x.between == r->between && x.after == r->after && x.n == r->n) {
		return;
	}
	*r = x;
	set_reach(r);
	r->factor = factor(r, r->to_start, p->range_s, rate);
}

// Returns, without a division, whether a counter was certainly not zero within to_start before its
// first sample. The margin exceeds any rounding of either side, except near the smallest doubles.
PROM_INLINE bool zero_is_far(const reach *r, double first, double increase) {
	double bound = r->to_start * increase;
	return bound > 1e-290 && first * r->sampled > bound * 1.000001;
}

typedef struct {
	resets resets;
	reach reach;
} state;

PROM_INLINE double counter(const series *s, const prom_spec *p, window w, state *x, bool rate) {
	double first = s->v[w.lo];
	double increase = add_resets(s->v[w.hi - 1] - first, w, &x->resets);
	reach_of(&x->reach, s, p, w, rate);
	const reach *r = &x->reach;
	// A counter is not extrapolated beyond the point where it was zero.
	if (increase > 0 && first >= 0 && !zero_is_far(r, first, increase)) {
		double to_zero = r->sampled * (first / increase);
		if (to_zero < r->to_start) {
			return increase * factor(r, to_zero, p->range_s, rate);
		}
	}
	return increase * r->factor;
}

PROM_INLINE double rate(const series *s, const prom_spec *p, window w, void *x) { return counter(s, p, w, x, true); }

PROM_INLINE double increase(const series *s, const prom_spec *p, window w, void *x) { return counter(s, p, w, x, false); }

PROM_INLINE double delta(const series *s, const prom_spec *p, window w, void *x) {
	reach *r = &((state *)x)->reach;
	reach_of(r, s, p, w, false);
	return (s->v[w.hi - 1] - s->v[w.lo]) * r->factor;
}

// Returns the number of resets at samples from..to-1; from > 0.
PROM_INLINE uint32_t count_resets(const double *v, uint32_t from, uint32_t to) {
	uint32_t count = 0;
	for (uint32_t i = from; i < to; i++) {
		count += v[i] < v[i - 1];
	}
	return count;
}

static void list_resets(const double *v, uint32_t from, uint32_t to, resets *r) {
	for (uint32_t i = from; i < to; i++) {
		if (v[i] < v[i - 1]) {
			r->at[r->n] = i;
			r->lost[r->n++] = v[i - 1];
		}
	}
}

// Samples are scanned in blocks of this size for any reset before resets are listed: resets are
// rare.
#define SCANNED 128

// Finds the resets of a series. false: no scratch memory.
static bool find_resets(const series *s, resets *r, prom_scratch *scratch) {
	const double *v = s->v;
	uint32_t count = count_resets(v, 1, s->n);
	if (count == 0) {
		return true;
	}
	r->lost = prom_scratch_take(scratch, (size_t)count * (sizeof *r->lost + sizeof *r->at));
	if (r->lost == NULL) {
		return false;
	}
	r->at = (uint32_t *)(r->lost + count);
	for (uint32_t from = 1, to; from < s->n; from = to) {
		to = s->n - from > SCANNED ? from + SCANNED : s->n;
		if (count_resets(v, from, to) > 0) {
			list_resets(v, from, to, r);
		}
	}
	return true;
}

int prom_range_rate(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	state x = {0};
	if (fn == PROM_DELTA) {
		return each_window(s, p, out, 2, delta, &x);
	}
	if (!find_resets(s, &x.resets, scratch)) {
		return -1;
	}
	if (fn == PROM_RATE) {
		return each_window(s, p, out, 2, rate, &x);
	}
	return each_window(s, p, out, 2, increase, &x);
}
