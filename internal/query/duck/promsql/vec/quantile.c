// prom_quantile: the quantile of all series at each step.
#include "rows.h"

#include "../kernel/select.h"

#define BLOCK 8 // steps that are gathered at once: a cache line of each series

typedef struct {
	agg_rows rows; // first, see agg_rows_destroy
	double phi;
} state;

static bool add(void *state_, const void *extra, const vec_row *row, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *s = state_;
	s->phi = row->spec->phi;
	return agg_rows_add(&s->rows, row, err);
}

static bool move(void *from, void *to, const void *extra, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *a = from, *b = to;
	if (a->rows.count > 0) {
		b->phi = a->phi;
	}
	return agg_rows_move(&a->rows, &b->rows, err);
}

// The values of one step in the order of the series.
typedef struct {
	double *values;
	uint32_t n;
} step;

static void gather(const agg_rows *rows, uint32_t from, uint32_t steps, step *to) {
	for (uint32_t r = 0; r < rows->count; r++) {
		for (uint32_t j = 0; j < steps; j++) {
			double v = agg_row_at(&rows->rows[r], from + j);
			to[j].values[to[j].n] = v;
			to[j].n += !prom_is_absent(v);
		}
	}
}

bool agg_rows_quantile(agg_rows *r, double phi, double *out, bool *any, char err[PROM_ERROR_BYTES]) {
	size_t count = r->count;
	double *values = agg_rows_scratch(r, BLOCK * count, sizeof *values, err);
	ordered o = {.keys = values == NULL ? NULL : agg_rows_scratch(r, count, sizeof *o.keys, err)};
	bool ok = o.keys != NULL;
	agg_rows_by_ordinal(r);
	for (uint32_t k = 0; ok && k < r->n; k += BLOCK) {
		uint32_t steps = r->n - k < BLOCK ? r->n - k : BLOCK;
		step block[BLOCK] = {0};
		for (uint32_t j = 0; j < steps; j++) {
			block[j].values = values + j * count;
		}
		gather(r, k, steps, block);
		for (uint32_t j = 0; j < steps; j++) {
			const step *s = &block[j];
			load_values(&o, s->values, s->n);
			out[k + j] = s->n > 0 ? quantile_of(&o, phi, s->values, s->n) : prom_absent_value();
			*any |= s->n > 0;
		}
		ok = !agg_rows_cancelled(r, err);
	}
	prom_free(values);
	prom_free(o.keys);
	return ok;
}

static uint32_t steps(const void *s) { return ((const state *)s)->rows.n; }

static bool finish(void *state_, const void *extra, vec_out *out, idx_t row, char err[PROM_ERROR_BYTES]) {
	(void)extra;
	state *s = state_;
	bool any = false, ok = s->rows.count == 0 || agg_rows_quantile(&s->rows, s->phi, vec_out_next(out), &any, err);
	vec_out_put(out, row, s->rows.n, any);
	return ok;
}

const vec_aggregate agg_table_quantile[] = {
    {.name = "prom_quantile", .parameters = {VEC_UINTEGER, VEC_LIST, VEC_VARCHAR}, .result = VEC_LIST, .size = sizeof(state),
     .destroy = agg_rows_destroy, .keys = PROM_KEY_PHI, .add = add, .move = move, .steps = steps, .finish = finish},
    {0},
};
