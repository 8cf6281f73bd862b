// The loops of prom_binary.
#include "operators.h"


#include "gomath.h"

// The loop of an operator on a and b. A result is present where the mask keep is set; keep may use
// gone, the mask of a or b being absent. There is one loop for two lists, and one for a constant on
// either side.
#define OPERATOR(name, result, keep) \
	VEC_INLINE uint64_t name##_core(const double *restrict l, size_t ls, const double *restrict r, size_t rs, double *restrict out, uint32_t n) { \
		uint64_t any = 0; \
		for (uint32_t k = 0; k < n; k++) { \
			double a = l[k * ls], b = r[k * rs], y = (result); \
			uint64_t gone = vec_gone(a) | vec_gone(b), kept = (keep); \
			(void)gone; \
			out[k] = vec_choose(kept, y, prom_absent_value()); \
			any |= kept; \
		} \
		return any; \
	} \
	static uint64_t name(const double *l, size_t ls, const double *r, size_t rs, double *out, uint32_t n) { \
		if (ls == rs) { \
			return name##_core(l, 1, r, 1, out, n); \
		} \
		return rs == 0 ? name##_core(l, 1, r, 0, out, n) : name##_core(l, 0, r, 1, out, n); \
	}

// A comparison returns the left side, the right side, or 0 and 1.
#define COMPARISON(name, comparison) \
	OPERATOR(name, a, ~gone &vec_mask(a comparison b)) \
	OPERATOR(name##_right, b, ~gone &vec_mask(a comparison b)) \
	OPERATOR(name##_bool, vec_choose(vec_mask(a comparison b), 1, 0), ~gone)

OPERATOR(do_add, a + b, ~gone)
OPERATOR(do_sub, a - b, ~gone)
OPERATOR(do_mul, a *b, ~gone)
OPERATOR(do_div, a / b, ~gone)
OPERATOR(do_mod, fmod(a, b), ~gone)
COMPARISON(do_eq, ==)
COMPARISON(do_ne, !=)
COMPARISON(do_gt, >)
COMPARISON(do_lt, <)
COMPARISON(do_ge, >=)
COMPARISON(do_le, <=)
OPERATOR(do_and, a, ~gone)
OPERATOR(do_unless, a, ~vec_gone(a) & vec_gone(b))
OPERATOR(do_or, vec_choose(vec_gone(a), b, a), ~(vec_gone(a) & vec_gone(b)))

static uint64_t present(const double *v, uint32_t n) {
	uint64_t any = 0;
	for (uint32_t k = 0; k < n; k++) {
		any |= ~vec_gone(v[k]);
	}
	return any;
}

static uint64_t by_go(prom_go_binary fn, const double *l, size_t ls, const double *r, size_t rs, double *out, uint32_t n) {
	promGoBinary(fn, (double *)(uintptr_t)l, ls, (double *)(uintptr_t)r, rs, out, n);
	return present(out, n);
}

static uint64_t do_pow(const double *l, size_t ls, const double *r, size_t rs, double *out, uint32_t n) {
	return by_go(PROM_GO_POW, l, ls, r, rs, out, n);
}

static uint64_t do_atan2(const double *l, size_t ls, const double *r, size_t rs, double *out, uint32_t n) {
	return by_go(PROM_GO_ATAN2, l, ls, r, rs, out, n);
}

#define COMPARISON_NAMES(sign, name) \
	{sign, name, false, false}, {"r" sign, name##_right, false, false}, { "bool" sign, name##_bool, false, false }

static const vec_operator operators[] = {
    {"+", do_add, false, false},
    {"-", do_sub, false, false},
    {"*", do_mul, false, false},
    {"/", do_div, false, false},
    {"%", do_mod, false, false},
    {"^", do_pow, false, false},
    {"atan2", do_atan2, false, false},
    COMPARISON_NAMES("==", do_eq),
    COMPARISON_NAMES("!=", do_ne),
    COMPARISON_NAMES(">", do_gt),
    COMPARISON_NAMES("<", do_lt),
    COMPARISON_NAMES(">=", do_ge),
    COMPARISON_NAMES("<=", do_le),
    {"and", do_and, false, false},
    {"unless", do_unless, true, false},
    {"or", do_or, true, true},
    {0},
};

const vec_operator *vec_operator_find(vec_text name) {
	for (const vec_operator *o = operators; o->name != NULL; o++) {
		if (vec_text_is(name, o->name)) {
			return o;
		}
	}
	return NULL;
}
