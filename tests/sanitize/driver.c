// Runs the kernels and the code that gathers samples over random input; built with sanitizers. Each
// series is gathered in several ways and compared with a simple model; kernels must agree whatever
// memory is refused; nothing may leak. With a third argument each round is repeated once per
// allocation, which then fails, and the kernels must report it. Usage: driver [ROUNDS] [SEED]
// [fail]. The linker needs --wrap=malloc, --wrap=calloc and --wrap=realloc.
#include "../../internal/query/duck/promsql/kernel/kernel.h"
#include "../../internal/query/duck/promsql/vec/windowstate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(what)                                                                                             \
	do {                                                                                                        \
		if (!(what)) {                                                                                          \
			fprintf(stderr, "%s:%d: round %" PRIu64 ": %s\n", __FILE__, __LINE__, round_number, #what);         \
			abort();                                                                                            \
		}                                                                                                       \
	} while (0)

#define MOST 3000
#define STEPS 200

#define NAME(id, name, kernel, keys) name,
static const char *const names[] = {PROM_RANGE_LIST(NAME)};
#undef NAME

static uint64_t round_number, seed;

static uint64_t next_random(void) {
	seed += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = seed;
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static uint64_t below(uint64_t n) { return next_random() % n; }

// Allocations of the round so far, the one that fails (0: none), and whether it came.
static uint64_t allocations, failing;
static bool failed;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);

static bool fails(void) {
	bool now = ++allocations == failing;
	failed = failed || now;
	return now;
}

void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }

// Memory of the driver's own, which never fails.
static void *own(size_t n) {
	void *p = __real_malloc(n);
	if (p == NULL) {
		abort();
	}
	return p;
}

// Says whether a budget may refuse memory: it is used up, or the machine's is.
static bool may_refuse(const prom_budget *b) { return failed || prom_budget_counts(b).needed > 0; }

// Rows of one series, as a chunk has them.
static int64_t us[MOST];
static double value[MOST];

static double random_value(int kind) {
	static const double odd[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1.7e308, -1.7e308, 5e-324, 1e15};
	switch (kind) {
	case 0:
		return (double)below(1000);
	case 1:
		return (double)(int64_t)next_random() / 1e9;
	case 2:
		return below(4) == 0 ? odd[below(sizeof odd / sizeof odd[0])] : (double)below(5);
	default:
		return below(3) == 0 ? prom_absent_value() : odd[below(sizeof odd / sizeof odd[0])];
	}
}

static uint32_t random_rows(void) {
	uint32_t n = (uint32_t)below(below(4) == 0 ? MOST : 200);
	int kind = (int)below(4), order = (int)below(4);
	int64_t t = (int64_t)below(1000000) - 500000;
	int64_t far = below(8) == 0 ? INT64_C(50000000) : 1;
	for (uint32_t i = 0; i < n; i++) {
		t += (int64_t)below(30000) * far;
		us[i] = (order == 0 ? (int64_t)below(1000000) : order == 1 ? -t : t) * 1000 + (int64_t)below(2) * 999;
		value[i] = random_value(kind);
	}
	return n;
}

static int64_t floor_ms(int64_t t) { return t / 1000 - (t % 1000 < 0); }

typedef struct {
	int64_t ms;
	uint64_t rank;
	double v;
} sample;

static int compare_samples(const void *x, const void *y) {
	const sample *a = x, *b = y;
	if (a->ms != b->ms) {
		return a->ms < b->ms ? -1 : 1;
	}
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static prom_spec random_spec(prom_budget *b) {
	prom_spec s = {.start = (int64_t)below(3000000) - 1000000, .step = 1 + (int64_t)below(100000), .n = 1 + (int64_t)below(STEPS)};
	s.range = 1 + (int64_t)below(below(2) == 0 ? 60000 : 5000000);
	s.range_s = (double)s.range / 1000;
	s.shift = (int64_t)below(100000) - 50000;
	s.phi = (double)below(14) / 10 - 0.2;
	s.sf = 0.1 + (double)below(8) / 10;
	s.tf = 0.1 + (double)below(8) / 10;
	s.dur = (double)below(10000);
	s.budget = b;
	return s;
}

// A kernel that knows the windows of the last series must come to what another one wrote, unless
// memory is refused.
static void evaluate_again(int fn, const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec, int result, const double *want) {
	prom_kernel k = prom_kernel_of(fn, spec);
	double *out = own((size_t)spec->n * sizeof *out);
	for (int again = 0; again < 3; again++) {
		int r = prom_kernel_eval(&k, ts, v, n, again > 0 ? PROM_SAME_TIMES : 0, out);
		CHECK(r == PROM_KERNEL_REFUSED || result == PROM_KERNEL_REFUSED || r == result);
		CHECK(r == PROM_KERNEL_REFUSED || result == PROM_KERNEL_REFUSED || memcmp(out, want, (size_t)spec->n * sizeof *out) == 0);
		CHECK(r != PROM_KERNEL_REFUSED || may_refuse(spec->budget));
	}
	free(out);
	prom_kernel_clear(&k);
}

// Runs all kernels. Refused memory is fine, wrong presence is not.
static void evaluate(const int64_t *ts, const double *v, uint32_t n, const prom_spec *spec) {
	double *out = own((size_t)spec->n * sizeof *out); // of its own, so that a write beyond it is seen
	for (int fn = 0; fn < PROM_RANGE_FUNCTIONS; fn++) {
		CHECK(prom_range_find(names[fn], strlen(names[fn])) == fn);
		prom_kernel k = prom_kernel_of(fn, spec);
		int r = prom_kernel_eval(&k, ts, v, n, 0, out);
		prom_kernel_clear(&k);
		int present = 0;
		for (int64_t i = 0; r != PROM_KERNEL_REFUSED && i < spec->n; i++) {
			present |= !prom_is_absent(out[i]);
		}
		CHECK(r == PROM_KERNEL_REFUSED || r == (present ? PROM_KERNEL_PRESENT : PROM_KERNEL_NONE));
		CHECK(r != PROM_KERNEL_REFUSED || may_refuse(spec->budget));
		evaluate_again(fn, ts, v, n, spec, r, out);
	}
	free(out);
}

// Gathers the rows in states that are combined into one, which must have the samples of the window,
// of equal times the last one. A fixed window ends at the first row.
static void check_window(prom_budget *b, uint32_t n) {
	window_state all = {0}, part = {0};
	window_shape shape = {.range = 1 + (int64_t)below(below(2) == 0 ? 60000 : 5000000), .parameters = {NAN, (double)below(3)}};
	bool slides = below(2) == 0, ok = true;
	int64_t end = floor_ms(us[0]);
	for (uint32_t i = 0; i < n && ok; i++) {
		int64_t ms = floor_ms(us[i]);
		end = slides && ms > end ? ms : end;
		shape.end = slides ? ms : end;
		CHECK(window_extend(&part, &shape, slides));
		ok = ms > end || window_add(&part, b, &ms, &value[i], 1);
		if (ok && (below(16) == 0 || i + 1 == n)) {
			CHECK(window_extend(&all, &part.shape, slides));
			ok = window_add(&all, b, part.ts, part.v, part.n);
			window_clear(&part);
		}
	}
	window_clear(&part);
	if (ok && window_sort(&all, b)) {
		static sample want[MOST];
		for (uint32_t i = 0; i < n; i++) {
			want[i] = (sample){floor_ms(us[i]), i, value[i]};
		}
		qsort(want, n, sizeof *want, compare_samples);
		CHECK(all.shape.end == end);
		uint32_t at = 0;
		while (at < all.n && all.ts[at] <= end - shape.range) {
			at++;
		}
		for (uint32_t i = 0; i < n; i++) {
			if (want[i].ms > end - shape.range && want[i].ms <= end && (i + 1 == n || want[i + 1].ms != want[i].ms)) {
				CHECK(at < all.n && all.ts[at] == want[i].ms && prom_bits(all.v[at]) == prom_bits(want[i].v));
				at++;
			}
		}
		CHECK(at == all.n);
		shape = all.shape;
		shape.range++;
		CHECK(!window_extend(&all, &shape, slides));
	} else {
		CHECK(may_refuse(b));
	}
	window_clear(&all);
}

static void one_round(void) {
	int64_t id;
	int64_t limit = below(2) == 0 ? 0 : (int64_t)below(200000) + 1;
	prom_budget *b = prom_budget_open(limit, &id);
	if (b == NULL) {
		CHECK(failed);
		return;
	}
	CHECK(prom_budget_acquire(id) == b);
	prom_budget_release(b);
	prom_spec spec = random_spec(b);
	uint32_t n = random_rows();
	window_state state = {0};
	window_shape whole = {.end = INT64_MAX / 4, .range = INT64_MAX / 2};
	bool ok = window_extend(&state, &whole, false);
	for (uint32_t i = 0; i < n && ok; i++) {
		int64_t ms = floor_ms(us[i]);
		ok = window_add(&state, b, &ms, &value[i], 1);
	}
	if (n > 0 && ok && window_sort(&state, b)) {
		evaluate(state.ts, state.v, state.n, &spec);
	} else {
		CHECK(n == 0 || may_refuse(b));
	}
	window_clear(&state);
	if (n > 0) {
		check_window(b, n);
	}
	CHECK(limit == 0 || prom_budget_counts(b).peak <= limit);
	CHECK(prom_budget_close(b) == 0);
	CHECK(prom_budget_acquire(id) == NULL);
}

// Texts that are specs, and such that are cut or changed somewhere.
static void parse_specs(void) {
	char text[] = "start=-5 step=15000 n=480 range=300000 shift=7 phi=0x1.8p-1 dur=NaN k=3 budget=0", err[PROM_ERROR_BYTES];
	size_t len = sizeof text - 1;
	if (below(3) > 0) {
		len = (size_t)below(len);
	}
	if (below(3) > 0) {
		text[below(sizeof text - 1)] = (char)below(256);
	}
	char *copy = own(len + 1); // without an ending zero, so that reading beyond it is seen
	memcpy(copy, text, len);
	prom_spec s;
	if (prom_spec_parse(&s, copy, len, PROM_KEY_START, UINT32_MAX, err)) {
		CHECK(s.keys & PROM_KEY_START);
		prom_spec_close(&s);
	} else {
		CHECK(strlen(err) > 0 && strlen(err) < PROM_ERROR_BYTES);
	}
	free(copy);
}

static void both(void) {
	allocations = 0;
	failed = false;
	one_round();
	parse_specs();
}

// Repeats the round that begins at a seed, and lets each of its allocations fail in turn.
static void fail_each(uint64_t begin) {
	uint64_t all = allocations;
	for (failing = 1; failing <= all; failing++) {
		seed = begin;
		both();
		CHECK(failed);
		CHECK(prom_budget_counts(prom_budget_default()).used == 0);
	}
	failing = 0;
}

int main(int argc, char **argv) {
	uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 2000;
	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	for (round_number = 0; round_number < rounds; round_number++) {
		uint64_t begin = seed;
		both();
		uint64_t next = seed;
		if (argc > 3) {
			fail_each(begin);
			seed = next;
		}
	}
	CHECK(prom_budget_counts(prom_budget_default()).used == 0);
	printf("driver: %" PRIu64 " rounds passed\n", rounds);
	return 0;
}
