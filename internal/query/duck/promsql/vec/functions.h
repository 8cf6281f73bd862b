// Functions of one value and up to two parameters, for the steps of a list at once.
#pragma once

#include "vec.h"

// n steps: step k has v[k*vs], a[k*as] and b[k*bs]. Returns 0 if no result is there. Functions
// without parameters keep the bits of NaN, and so absent values.
typedef uint64_t (*vec_math_loop)(const double *v, size_t vs, const double *a, size_t as, const double *b, size_t bs, double *out, uint32_t n);

#define VEC_NO_GO (-1)

typedef struct {
	const char *name;
	int parameters;
	vec_math_loop loop;
	int go; // VEC_NO_GO, or the prom_go_unary that Go applies to what loop left
} vec_math_fn;

// The function of a name, NULL if there is none.
const vec_math_fn *vec_math_find(vec_text name);
