// Operators between the values of two lists.
#pragma once

#include "vec.h"

// n steps: step k has l[k*ls] and r[k*rs], strides 0 or 1. Returns 0 if no result is there.
typedef uint64_t (*vec_binary_loop)(const double *l, size_t ls, const double *r, size_t rs, double *out, uint32_t n);

typedef struct {
	const char *name;
	vec_binary_loop loop;
	bool left_alone, right_alone; // a list without its partner has results too
} vec_operator;

// The operator of a name, NULL if there is none.
const vec_operator *vec_operator_find(vec_text name);
