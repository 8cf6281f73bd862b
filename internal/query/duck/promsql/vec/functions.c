// The loops of prom_math. Functions whose bits IEEE 754 defines are computed here, the others by
// Go.
#include "functions.h"

#include "gomath.h"

#define PI 3.14159265358979323846

// A function of one value: result is in terms of x.
#define UNARY(name, result) \
	static uint64_t name(const double *restrict v, size_t vs, const double *a, size_t as, const double *b, size_t bs, double *restrict out, \
	                     uint32_t n) { \
		(void)vs, (void)a, (void)as, (void)b, (void)bs; \
		uint64_t any = 0; \
		for (uint32_t k = 0; k < n; k++) { \
			double x = v[k], y = (result); \
			out[k] = vec_choose(vec_mask(x != x), x, y); \
			any |= ~vec_gone(x); \
		} \
		return any; \
	}

UNARY(do_abs, fabs(x))
UNARY(do_ceil, ceil(x))
UNARY(do_floor, floor(x))
UNARY(do_sqrt, sqrt(x))
UNARY(do_neg, -x)
UNARY(do_rad, x *PI / 180)
UNARY(do_deg, x * 180 / PI)
UNARY(do_sgn, vec_choose(vec_mask(x < 0), -1, vec_choose(vec_mask(x > 0), 1, x)))
UNARY(do_copy, x)

// A function of x and the parameters p and q. gone is a mask with all bits set where x, p and q are
// present but give no result.
#define WITH_PARAMETERS(name, result, gone) \
	VEC_INLINE uint64_t name##_core(const double *restrict v, size_t vs, const double *restrict a, size_t as, const double *restrict b, size_t bs, \
	                                double *restrict out, uint32_t n) { \
		uint64_t any = 0; \
		for (uint32_t k = 0; k < n; k++) { \
			double x = v[k * vs], p = a[k * as], q = b[k * bs], y = (result); \
			uint64_t none = vec_gone(x) | vec_gone(p) | vec_gone(q) | (gone); \
			out[k] = vec_choose(none, prom_absent_value(), y); \
			any |= ~none; \
		} \
		return any; \
	} \
	static uint64_t name(const double *v, size_t vs, const double *a, size_t as, const double *b, size_t bs, double *out, uint32_t n) { \
		return vs == 1 && as == 0 && bs == 0 ? name##_core(v, 1, a, 0, b, 0, out, n) : name##_core(v, vs, a, as, b, bs, out, n); \
	}

// Go's math.Max and math.Min: a deciding infinity wins over NaN, and -0 is less than 0.
VEC_INLINE double go_max(double x, double y) {
	double r = vec_choose(vec_mask(x > y), x, y);
	r = vec_choose(vec_mask(x == y), prom_from_bits(prom_bits(x) & prom_bits(y)), r);
	r = vec_choose(vec_mask((x != x) | (y != y)), NAN, r);
	return vec_choose(vec_mask((x == INFINITY) | (y == INFINITY)), INFINITY, r);
}

VEC_INLINE double go_min(double x, double y) {
	double r = vec_choose(vec_mask(x < y), x, y);
	r = vec_choose(vec_mask(x == y), prom_from_bits(prom_bits(x) | prom_bits(y)), r);
	r = vec_choose(vec_mask((x != x) | (y != y)), NAN, r);
	return vec_choose(vec_mask((x == -INFINITY) | (y == -INFINITY)), -INFINITY, r);
}

// Rounding to the nearest multiple of p multiplies by the inverse and divides by it, as upstream
// does.
VEC_INLINE double round_to(double x, double p) {
	double inverse = 1.0 / p, y = floor(x * inverse + 0.5) / inverse;
	return vec_choose(vec_mask(y != y), NAN, y);
}

WITH_PARAMETERS(do_round, round_to(x, p), 0)
WITH_PARAMETERS(do_clamp, go_max(p, go_min(q, x)), vec_mask(q < p))
WITH_PARAMETERS(do_clamp_min, go_max(p, go_min(INFINITY, x)), 0)
WITH_PARAMETERS(do_clamp_max, go_max(-INFINITY, go_min(p, x)), 0)

#define BY_GO(id, name) {name, 0, do_copy, PROM_GO_##id},

static const vec_math_fn functions[] = {
    {"abs", 0, do_abs, VEC_NO_GO},
    {"ceil", 0, do_ceil, VEC_NO_GO},
    {"floor", 0, do_floor, VEC_NO_GO},
    {"sqrt", 0, do_sqrt, VEC_NO_GO},
    {"neg", 0, do_neg, VEC_NO_GO},
    {"rad", 0, do_rad, VEC_NO_GO},
    {"deg", 0, do_deg, VEC_NO_GO},
    {"sgn", 0, do_sgn, VEC_NO_GO},
    {"round", 1, do_round, VEC_NO_GO},
    {"clamp", 2, do_clamp, VEC_NO_GO},
    {"clamp_min", 1, do_clamp_min, VEC_NO_GO},
    {"clamp_max", 1, do_clamp_max, VEC_NO_GO},
    PROM_GO_LIST(BY_GO)
};

const vec_math_fn *vec_math_find(vec_text name) {
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		if (vec_text_is(name, functions[i].name)) {
			return &functions[i];
		}
	}
	return NULL;
}
