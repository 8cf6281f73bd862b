// Shared by the functions over lists of values: reading lists from DuckDB's vectors and writing
// them. Every C file here includes this first. The compiler vectorises the loops: a loop
// computes both sides of a choice and then chooses, so the compiler must know that arithmetic
// neither traps nor sets errno.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-trapping-math", "no-math-errno")
#endif

#include "../../../../../third_party/duckdb/duckdb.h"
#include "../kernel/spec.h"
#include "../kernel/value.h"

#define VEC_INLINE static inline __attribute__((always_inline))

// All bits if c, none if not.
VEC_INLINE uint64_t vec_mask(bool c) { return -(uint64_t)c; }

// a where the mask has all bits, b where it has none.
VEC_INLINE double vec_choose(uint64_t mask, double a, double b) {
	return prom_from_bits((prom_bits(a) & mask) | (prom_bits(b) & ~mask));
}

VEC_INLINE uint64_t vec_gone(double v) { return vec_mask(prom_bits(v) == PROM_ABSENT_BITS); }

// A VARCHAR or BLOB value.
typedef struct {
	const char *text;
	size_t len;
} vec_text;

VEC_INLINE vec_text vec_text_at(const duckdb_string_t *column, idx_t row) {
	const duckdb_string_t *s = &column[row];
	bool inlined = s->value.inlined.length <= 12;
	return (vec_text){inlined ? s->value.inlined.inlined : s->value.pointer.ptr, s->value.inlined.length};
}

VEC_INLINE bool vec_text_is(vec_text t, const char *s) { return strlen(s) == t.len && memcmp(t.text, s, t.len) == 0; }

VEC_INLINE bool vec_valid(const uint64_t *validity, idx_t row) {
	return validity == NULL || (validity[row / 64] >> (row % 64) & 1) != 0;
}

VEC_INLINE void vec_set_null(duckdb_vector v, idx_t row) {
	duckdb_vector_ensure_validity_writable(v);
	duckdb_validity_set_row_invalid(duckdb_vector_get_validity(v), row);
}

// A column without lists.
typedef struct {
	const void *data;
	const uint64_t *validity;
} vec_column;

vec_column vec_column_of(duckdb_data_chunk chunk, idx_t column);

// A DOUBLE[] column that is read.
typedef struct {
	const duckdb_list_entry *at;
	const double *values;
	const uint64_t *validity;
} vec_lists;

// One list; n is 0 for NULL and for an empty list, which mean the same.
typedef struct {
	const double *v;
	uint32_t n;
} vec_list;

// Returns false with a message if a list has a NULL among its elements or more than PROM_MAX_STEPS
// of them.
bool vec_lists_open(vec_lists *l, duckdb_data_chunk chunk, idx_t column, char err[PROM_ERROR_BYTES]);

VEC_INLINE vec_list vec_list_at(const vec_lists *l, idx_t row) {
	if (!vec_valid(l->validity, row)) {
		return (vec_list){NULL, 0};
	}
	return (vec_list){l->values + l->at[row].offset, (uint32_t)l->at[row].length};
}

// The distance between the elements for two steps: 0 for a list of one element, which stands for
// all steps.
VEC_INLINE size_t vec_stride(vec_list l) { return l.n > 1; }

// The common length of lists of a and b elements, 0 if they do not fit.
VEC_INLINE uint32_t vec_common(uint32_t a, uint32_t b) { return a == b || b == 1 ? a : a == 1 ? b : 0; }

// A DOUBLE[] column that is written, row by row in ascending order. Its elements are reserved by
// vec_out_open.
typedef struct {
	duckdb_vector vector;
	duckdb_list_entry *at;
	double *values;
	idx_t size; // elements that were kept
} vec_out;

// Makes room for elements more than there are. Returns false with a message if the machine has no
// memory for them.
bool vec_out_open(vec_out *o, duckdb_vector vector, idx_t elements, char err[PROM_ERROR_BYTES]);
VEC_INLINE double *vec_out_next(vec_out *o) { return o->values + o->size; }
void vec_out_keep(vec_out *o, idx_t row, uint32_t n); // the n elements that were written at vec_out_next are the row's list
void vec_out_null(vec_out *o, idx_t row);
void vec_out_close(vec_out *o);

// Keeps n elements if any of them is there, else writes NULL.
VEC_INLINE void vec_out_put(vec_out *o, idx_t row, uint32_t n, bool any) {
	if (any) {
		vec_out_keep(o, row, n);
	} else {
		vec_out_null(o, row);
	}
}

// The spec of a row. Rows of a chunk nearly always have one text, which is parsed when it changes.
// With an own budget, the text does not decide which one counts.
typedef struct {
	const duckdb_string_t *column;
	const uint64_t *validity;
	uint32_t required, optional; // keys
	bool open;
	duckdb_string_t last;
	prom_spec spec;
	prom_budget *own; // NULL: that of the text
} vec_specs;

void vec_specs_open(vec_specs *s, duckdb_data_chunk chunk, idx_t column, uint32_t required, uint32_t optional, prom_budget *own);
// NULL with a message if the spec is wrong or its query was cancelled. Valid until the next call.
const prom_spec *vec_specs_at(vec_specs *s, idx_t row, char err[PROM_ERROR_BYTES]);
void vec_specs_close(vec_specs *s);

// The name of a function or operator ("what"), which all rows of a column must have in common.
// Returns false with a message.
bool vec_constant_text(duckdb_data_chunk chunk, idx_t column, const char *what, vec_text *text, char err[PROM_ERROR_BYTES]);

// Writes an error about an unknown function or operator and returns false.
bool vec_unknown(const char *what, vec_text name, char err[PROM_ERROR_BYTES]);
