// From states to lists of values.
#include "../vec/register.h"
#include "aggregates.h"

#include <stdio.h>

// The result vector: rows of a list, and the values of all lists one after another.
typedef struct {
	duckdb_vector vector;
	duckdb_list_entry *entries;
	idx_t used; // values
	idx_t room; // values that are reserved
} lists;

// Reserves n more values, and n for each row left: all rows mostly have the same number of steps.
static bool reserve(lists *l, prom_budget *b, idx_t n, idx_t rows_left) {
	if (l->used + n <= l->room) {
		return true;
	}
	idx_t want = l->used + n * rows_left, room = 1;
	while (room < want) {
		room *= 2; // as DuckDB does
	}
	if (!prom_budget_fits(b, room * sizeof(double)) || duckdb_list_vector_reserve(l->vector, want) != DuckDBSuccess) {
		return false;
	}
	l->room = want;
	return true;
}

static double *next_values(const lists *l) {
	return (double *)duckdb_vector_get_data(duckdb_list_vector_get_child(l->vector)) + l->used;
}

static void set_row(lists *l, idx_t row, idx_t n) {
	l->entries[row] = (duckdb_list_entry){.offset = l->used, .length = n};
	l->used += n;
	if (n == 0) {
		duckdb_vector_ensure_validity_writable(l->vector);
		duckdb_validity_set_row_invalid(duckdb_vector_get_validity(l->vector), row);
	}
}

// Evaluates one state into a row. false: with a message.
static bool finish(const samples_state *s, int fn, samples_order *o, prom_scratch *scratch, lists *l, idx_t row, idx_t rows_left, char err[PROM_ERROR_BYTES]) {
	if (s->head == NULL) {
		set_row(l, row, 0);
		return true;
	}
	prom_budget *b = s->spec->budget;
	if (prom_cancelled(b)) {
		return prom_cancel_error(err);
	}
	if (s->n > UINT32_MAX) {
		snprintf(err, PROM_ERROR_BYTES, "a series has more than %lu samples", (unsigned long)UINT32_MAX);
		return false;
	}
	o->pieces.budget = o->series.budget = o->merged.budget = scratch->budget = b;
	const int64_t *ts;
	const double *v;
	uint32_t n;
	int present = -1;
	if (samples_sorted(s, o, prom_range_sees_stale(fn), &ts, &v, &n) && reserve(l, b, (idx_t)s->spec->n, rows_left)) {
		present = prom_range_run(fn, ts, v, n, s->spec, next_values(l), scratch);
	}
	if (present < 0) {
		return prom_memory_error(b, err);
	}
	set_row(l, row, present ? (idx_t)s->spec->n : 0);
	return true;
}

void samples_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset) {
	const samples_function *f = vec_extra_of(info)->extra;
	lists l = {.vector = result, .entries = duckdb_vector_get_data(result), .used = duckdb_list_vector_get_size(result)};
	l.room = l.used;
	samples_order order = {0};
	prom_scratch scratch = {0};
	char err[PROM_ERROR_BYTES];
	for (idx_t i = 0; i < count; i++) {
		if (!finish((const samples_state *)states[i], f->fn, &order, &scratch, &l, offset + i, count - i, err)) {
			duckdb_aggregate_function_set_error(info, err);
			break;
		}
	}
	duckdb_list_vector_set_size(result, l.used);
	prom_scratch_free(&order.pieces);
	prom_scratch_free(&order.series);
	prom_scratch_free(&order.merged);
	prom_scratch_free(&scratch);
}
