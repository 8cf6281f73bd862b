// Functions that Go computes on whole lists, because the last bits of results must be those of Go's
// library.
#pragma once

#include <stddef.h>

// The functions of one value: constant, name. From MINUTE on they are those of a date.
#define PROM_GO_LIST(X) \
	X(EXP, "exp") \
	X(LN, "ln") \
	X(LOG2, "log2") \
	X(LOG10, "log10") \
	X(SIN, "sin") \
	X(COS, "cos") \
	X(TAN, "tan") \
	X(ASIN, "asin") \
	X(ACOS, "acos") \
	X(ATAN, "atan") \
	X(SINH, "sinh") \
	X(COSH, "cosh") \
	X(TANH, "tanh") \
	X(ASINH, "asinh") \
	X(ACOSH, "acosh") \
	X(ATANH, "atanh") \
	X(MINUTE, "minute") \
	X(HOUR, "hour") \
	X(DAY_OF_MONTH, "day_of_month") \
	X(DAY_OF_WEEK, "day_of_week") \
	X(DAY_OF_YEAR, "day_of_year") \
	X(DAYS_IN_MONTH, "days_in_month") \
	X(MONTH, "month") \
	X(YEAR, "year")

#define FUNCTION(id, name) PROM_GO_##id,
typedef enum { PROM_GO_LIST(FUNCTION) PROM_GO_UNARY } prom_go_unary; // the last one is their number
#undef FUNCTION

typedef enum { PROM_GO_POW, PROM_GO_ATAN2, PROM_GO_BINARY } prom_go_binary;

// Replaces each of n values by the function's; absent ones stay.
void promGoUnary(int fn, double *v, size_t n);

// out[k] = the function of l[k*ls] and r[k*rs]; absent if one of them is.
void promGoBinary(int fn, double *l, size_t ls, double *r, size_t rs, double *out, size_t n);
