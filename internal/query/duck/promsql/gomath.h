// What C asks Go to do on a whole list, because its result's last bits or its order are those of Go's library.
#pragma once

#include <stddef.h>

typedef enum {
	PROM_GO_EXP,
	PROM_GO_LN,
	PROM_GO_LOG2,
	PROM_GO_LOG10,
	PROM_GO_SIN,
	PROM_GO_COS,
	PROM_GO_TAN,
	PROM_GO_ASIN,
	PROM_GO_ACOS,
	PROM_GO_ATAN,
	PROM_GO_SINH,
	PROM_GO_COSH,
	PROM_GO_TANH,
	PROM_GO_ASINH,
	PROM_GO_ACOSH,
	PROM_GO_ATANH,
	PROM_GO_UNARY // how many there are
} prom_go_unary;

typedef enum { PROM_GO_POW, PROM_GO_ATAN2, PROM_GO_BINARY } prom_go_binary;

// Replaces each of n values by the function's; absent ones stay.
void promGoUnary(int fn, double *v, size_t n);

// out[k] = the function of l[k*ls] and r[k*rs]; absent if one of them is.
void promGoBinary(int fn, double *l, size_t ls, double *r, size_t rs, double *out, size_t n);

// Sorts n values as sort.Sort does with upstream's order of samples by value, which knows no order of -0 and 0.
void promGoSort(double *v, size_t n);
