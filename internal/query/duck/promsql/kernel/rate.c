// rate, increase and delta: the difference over a window, corrected for counter resets and
// extrapolated to the window's ends.
#include "lanes.h"

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
PROM_INLINE void set_reach(reach *r) {
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
	int64_t first = s->ts[w.lo], last = s->ts[w.hi - 1], t = time_of(p, w);
	reach x = {.before = first - (t - p->range), .between = last - first, .after = t - last, .n = w.hi - w.lo};
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

// The result of a window, whose reach is known.
PROM_INLINE double of_window(int fn, const series *s, const prom_spec *p, window w, state *x) {
	const reach *r = &x->reach;
	double first = s->v[w.lo], difference = s->v[w.hi - 1] - first;
	if (fn == PROM_DELTA) {
		return difference * r->factor;
	}
	double increase = add_resets(difference, w, &x->resets);
	// A counter is not extrapolated beyond the point where it was zero.
	if (increase > 0 && first >= 0 && !zero_is_far(r, first, increase)) {
		double to_zero = r->sampled * (first / increase);
		if (to_zero < r->to_start) {
			return increase * factor(r, to_zero, p->range_s, fn == PROM_RATE);
		}
	}
	return increase * r->factor;
}

// Whether there are resets at samples from..to-1; from > 0.
PROM_INLINE bool any_reset(const double *v, uint32_t from, uint32_t to) {
	lane_bits some = {0};
	uint32_t i = from;
	for (; i + LANES <= to; i += LANES) {
		lanes before, here;
		memcpy(&before, v + i - 1, sizeof before);
		memcpy(&here, v + i, sizeof here);
		some |= here < before;
	}
	int64_t any = some[0] | some[1] | some[2] | some[3];
	for (; i < to; i++) {
		any |= v[i] < v[i - 1];
	}
	return any != 0;
}

// Lists the resets at samples from..to-1; from > 0.
PROM_INLINE void list_resets(const double *v, uint32_t from, uint32_t to, resets *r) {
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
PROM_INLINE bool find_resets(const series *s, resets *r, prom_scratch *scratch) {
	const double *v = s->v;
	uint32_t most = 0; // there may be
	for (uint32_t from = 1, to; from < s->n; from = to) {
		to = s->n - from > SCANNED ? from + SCANNED : s->n;
		most += any_reset(v, from, to) ? to - from : 0;
	}
	if (most == 0) {
		return true;
	}
	r->lost = prom_scratch_take(scratch, (size_t)most * (sizeof *r->lost + sizeof *r->at));
	if (r->lost == NULL) {
		return false;
	}
	r->at = (uint32_t *)(r->lost + most);
	for (uint32_t from = 1, to; from < s->n; from = to) {
		to = s->n - from > SCANNED ? from + SCANNED : s->n;
		if (any_reset(v, from, to)) {
			list_resets(v, from, to, r);
		}
	}
	return true;
}

// Whether there is a reset in samples lo+1..hi-1. No earlier sample is asked for afterwards.
PROM_INLINE bool resets_in(resets *r, uint32_t lo, uint32_t hi) {
	while (r->first < r->n && r->at[r->first] <= lo) {
		r->first++;
	}
	return r->first < r->n && r->at[r->first] < hi;
}

// of_window for windows that are stride samples apart and have as many samples as the first one, w,
// at distances that are those of the reach. Lanes are windows without resets.
PROM_INLINE void of_windows(int fn, const series *s, const prom_spec *p, window w, uint32_t stride, uint32_t n, state *x, double *out) {
	const reach *r = &x->reach;
	const uint32_t last = w.hi - w.lo - 1;
	for (uint32_t i = 0, some; i < n; i += some, w.lo += some * stride, w.hi += some * stride) {
		some = n - i < LANES ? 1 : LANES;
		if (some == LANES && (fn == PROM_DELTA || !resets_in(&x->resets, w.lo, w.hi + 3 * stride))) {
			const double *v = s->v + w.lo, *e = v + last;
			const lanes from = {v[0], v[stride], v[2 * stride], v[3 * stride]};
			const lanes difference = (lanes){e[0], e[stride], e[2 * stride], e[3 * stride]} - from;
			// As of_window and zero_is_far have it.
			const lanes bound = r->to_start * difference;
			const lane_bits far = (bound > 1e-290) & (from * r->sampled > bound * 1.000001);
			const lane_bits near = (difference > 0) & (from >= 0) & ~far;
			if (fn == PROM_DELTA || (near[0] | near[1] | near[2] | near[3]) == 0) {
				const lanes result = difference * r->factor;
				memcpy(out + i, &result, sizeof result);
				continue;
			}
		}
		window one = w;
		for (uint32_t k = i; k < i + some; k++, one.lo += stride, one.hi += stride) {
			out[k] = of_window(fn, s, p, one, x);
		}
	}
}

// each_window: windows that are alike are computed together.
PROM_INLINE int run(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	state x = {0};
	if (fn != PROM_DELTA && !find_resets(s, &x.resets, scratch)) {
		return -1;
	}
	int any = 0;
	for (const window *w = s->windows, *end = w + s->count; w < end; w++) {
		if (w->hi - w->lo < 2) {
			continue;
		}
		reach_of(&x.reach, s, p, *w, fn == PROM_RATE);
		out[w->k] = of_window(fn, s, p, *w, &x);
		if (w->alike > 0) {
			of_windows(fn, s, p, w[1], w[1].lo - w->lo, w->alike, &x, out + w[1].k);
			w += w->alike;
		}
		any = 1;
	}
	return any;
}

PROM_INLINE int run_any(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	switch (fn) {
	case PROM_RATE:
		return run(PROM_RATE, s, p, out, scratch);
	case PROM_INCREASE:
		return run(PROM_INCREASE, s, p, out, scratch);
	default: // PROM_DELTA
		return run(PROM_DELTA, s, p, out, scratch);
	}
}

RUN_BEST((int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch), (fn, s, p, out, scratch))

int prom_range_rate(int fn, const series *s, const prom_spec *p, double *out, prom_scratch *scratch) {
	return run_best(fn, s, p, out, scratch);
}
