#include "rows.h"

#include <stdio.h>
#include <stdlib.h>

static bool grow(agg_rows *r, prom_budget *b, uint64_t room, char err[PROM_ERROR_BYTES]) {
	if (room <= r->room) {
		return true;
	}
	room = room < 2 * (uint64_t)r->room ? 2 * (uint64_t)r->room : room;
	agg_row *rows = room > UINT32_MAX ? NULL : prom_realloc(b, r->rows, room * sizeof *rows);
	if (rows == NULL) {
		return prom_memory_error(b, err);
	}
	r->rows = rows;
	r->room = (uint32_t)room;
	r->budget = b;
	return true;
}

// Fits n steps to those of the rows.
static bool fit(agg_rows *r, uint32_t n, char err[PROM_ERROR_BYTES]) {
	uint32_t both = r->n == 0 ? n : vec_common(r->n, n);
	if (both == 0) {
		snprintf(err, PROM_ERROR_BYTES, "aggregate values: lists of %u and %u values in one group", r->n, n);
		return false;
	}
	r->n = both;
	return true;
}

bool agg_rows_add(agg_rows *r, const vec_row *row, char err[PROM_ERROR_BYTES]) {
	prom_budget *b = row->spec->budget;
	uint32_t n = row->list.n;
	if (!fit(r, n, err) || !grow(r, b, (uint64_t)r->count + 1, err)) {
		return false;
	}
	double *v = prom_alloc(b, sizeof(double) * n);
	if (v == NULL) {
		return prom_memory_error(b, err);
	}
	memcpy(v, row->list.v, sizeof(double) * n);
	r->rows[r->count++] = (agg_row){.i = row->ordinal, .n = n, .le = row->le, .v = v};
	return true;
}

bool agg_rows_move(agg_rows *from, agg_rows *to, char err[PROM_ERROR_BYTES]) {
	if (from->count == 0) {
		return true;
	}
	if (to->count == 0) {
		agg_rows_free(to);
		*to = *from;
		*from = (agg_rows){0};
		return true;
	}
	if (!fit(to, from->n, err) || !grow(to, to->budget, (uint64_t)to->count + from->count, err)) {
		return false;
	}
	memcpy(to->rows + to->count, from->rows, from->count * sizeof *from->rows);
	to->count += from->count;
	from->count = 0;
	agg_rows_free(from);
	return true;
}

void agg_rows_free(agg_rows *r) {
	for (uint32_t i = 0; i < r->count; i++) {
		prom_free(r->rows[i].v);
	}
	prom_free(r->rows);
	*r = (agg_rows){0};
}

static int compare_ordinals(const void *a, const void *b) {
	uint32_t x = ((const agg_row *)a)->i, y = ((const agg_row *)b)->i;
	return (x > y) - (x < y);
}

// Rows of equal bounds are ordered by ordinal, if they have ordinals, to make the order
// deterministic.
static int compare_bounds(const void *a, const void *b) {
	double x = ((const agg_row *)a)->le, y = ((const agg_row *)b)->le;
	return x == y ? compare_ordinals(a, b) : (x > y) - (x < y);
}

void agg_rows_by_ordinal(agg_rows *r) { qsort(r->rows, r->count, sizeof *r->rows, compare_ordinals); }

void agg_rows_by_bound(agg_rows *r) { qsort(r->rows, r->count, sizeof *r->rows, compare_bounds); }

void *agg_rows_scratch(const agg_rows *r, size_t count, size_t size, char err[PROM_ERROR_BYTES]) {
	size_t bytes;
	void *p = __builtin_mul_overflow(count, size, &bytes) ? NULL : prom_alloc(r->budget, bytes);
	if (p == NULL) {
		prom_memory_error(r->budget, err);
	}
	return p;
}

void agg_rows_destroy(duckdb_aggregate_state *states, idx_t count) {
	for (idx_t i = 0; i < count; i++) {
		agg_rows_free((agg_rows *)states[i]);
	}
}

bool agg_rows_cancelled(const agg_rows *r, char err[PROM_ERROR_BYTES]) {
	return r->count > 0 && prom_cancelled(r->budget) && !prom_cancel_error(err);
}
