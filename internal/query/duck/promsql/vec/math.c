// prom_math and prom_binary: from DuckDB's chunks to the loops.
#include "functions.h"

#include <stdio.h>

#include "gomath.h"
#include "operators.h"
#include "register.h"

static bool misfit(uint32_t a, uint32_t b, char err[PROM_ERROR_BYTES]) {
	snprintf(err, PROM_ERROR_BYTES, "calculate with values: lists of %u and %u values", a, b);
	return false;
}

// The lists of a row of prom_math. n is the result's length, 0 if there is none; false if the
// lengths do not fit.
typedef struct {
	vec_list v, a, b;
	uint32_t n;
} math_row;

static bool math_row_at(math_row *row, const vec_math_fn *fn, const vec_lists *lists, idx_t i, char err[PROM_ERROR_BYTES]) {
	vec_list v = vec_list_at(&lists[0], i), a = fn->parameters > 0 ? vec_list_at(&lists[1], i) : v, b = fn->parameters > 1 ? vec_list_at(&lists[2], i) : a;
	*row = (math_row){v, a, b, 0};
	if (v.n == 0 || a.n == 0 || b.n == 0) {
		return true;
	}
	uint32_t n = vec_common(v.n, a.n);
	if (n == 0) {
		return misfit(v.n, a.n, err);
	}
	row->n = vec_common(n, b.n);
	return row->n != 0 || misfit(n, b.n, err);
}

static bool math(duckdb_data_chunk in, duckdb_vector result, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	(void)own;
	vec_text name;
	vec_lists lists[3];
	for (idx_t c = 0; c < 3; c++) {
		if (!vec_lists_open(&lists[c], in, c + 1, err)) {
			return false;
		}
	}
	if (!vec_constant_text(in, 0, "function", &name, err)) {
		return false;
	}
	const vec_math_fn *fn = vec_math_find(name);
	if (fn == NULL) {
		return vec_unknown("function", name, err);
	}
	math_row row;
	idx_t rows = duckdb_data_chunk_get_size(in), elements = 0;
	for (idx_t i = 0; i < rows; i++) {
		if (!math_row_at(&row, fn, lists, i, err)) {
			return false;
		}
		elements += row.n;
	}
	vec_out out;
	if (!vec_out_open(&out, result, elements, err)) {
		return false;
	}
	double *first = vec_out_next(&out);
	for (idx_t i = 0; i < rows; i++) {
		math_row_at(&row, fn, lists, i, err);
		vec_out_put(&out, i, row.n,
		            row.n > 0 && fn->loop(row.v.v, vec_stride(row.v), row.a.v, vec_stride(row.a), row.b.v, vec_stride(row.b), vec_out_next(&out), row.n) != 0);
	}
	if (fn->go != VEC_NO_GO && vec_out_next(&out) != first) {
		promGoUnary(fn->go, first, (size_t)(vec_out_next(&out) - first));
	}
	vec_out_close(&out);
	return true;
}

// The lists of a row of prom_binary, a missing one as a constant absence where the operator can do
// without it.
typedef struct {
	vec_list l, r;
	uint32_t n;
} binary_row;

static const uint64_t absence = PROM_ABSENT_BITS;

static bool binary_row_at(binary_row *row, const vec_operator *op, const vec_lists *lists, idx_t i, char err[PROM_ERROR_BYTES]) {
	vec_list l = vec_list_at(&lists[0], i), r = vec_list_at(&lists[1], i);
	*row = (binary_row){l, r, 0};
	if ((l.n == 0 && r.n == 0) || (l.n == 0 && !op->right_alone) || (r.n == 0 && !op->left_alone)) {
		return true;
	}
	vec_list none = {(const double *)&absence, 1};
	row->l = l.n == 0 ? none : l;
	row->r = r.n == 0 ? none : r;
	row->n = vec_common(row->l.n, row->r.n);
	return row->n != 0 || misfit(l.n, r.n, err);
}

static bool binary(duckdb_data_chunk in, duckdb_vector result, prom_budget *own, char err[PROM_ERROR_BYTES]) {
	(void)own;
	vec_text name;
	vec_lists lists[2];
	if (!vec_lists_open(&lists[0], in, 1, err) || !vec_lists_open(&lists[1], in, 2, err) || !vec_constant_text(in, 0, "operator", &name, err)) {
		return false;
	}
	const vec_operator *op = vec_operator_find(name);
	if (op == NULL) {
		return vec_unknown("operator", name, err);
	}
	binary_row row;
	idx_t rows = duckdb_data_chunk_get_size(in), elements = 0;
	for (idx_t i = 0; i < rows; i++) {
		if (!binary_row_at(&row, op, lists, i, err)) {
			return false;
		}
		elements += row.n;
	}
	vec_out out;
	if (!vec_out_open(&out, result, elements, err)) {
		return false;
	}
	for (idx_t i = 0; i < rows; i++) {
		binary_row_at(&row, op, lists, i, err);
		vec_out_put(&out, i, row.n, row.n > 0 && op->loop(row.l.v, vec_stride(row.l), row.r.v, vec_stride(row.r), vec_out_next(&out), row.n) != 0);
	}
	vec_out_close(&out);
	return true;
}

const vec_scalar vec_scalars_math[] = {
    {"prom_math", {VEC_VARCHAR, VEC_LIST, VEC_LIST, VEC_LIST}, VEC_LIST, math},
    {"prom_binary", {VEC_VARCHAR, VEC_LIST, VEC_LIST}, VEC_LIST, binary},
    {0},
};
