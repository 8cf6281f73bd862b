#include "state.h"

#include <stdio.h>

void agg_planes_init(const agg_planes *op, double *p, uint32_t n) {
	for (uint32_t j = 0; j < op->planes; j++) {
		for (uint32_t k = 0; k < n; k++) {
			p[(size_t)j * n + k] = prom_from_bits(op->initial[j]);
		}
	}
}

// New planes of n steps that hold the one series v.
static double *planes_of(const agg_planes *op, prom_budget *b, const double *v, uint32_t n) {
	double *p = prom_alloc(b, sizeof(double) * op->planes * n);
	if (p != NULL) {
		agg_planes_init(op, p, n);
		op->add(p, n, n, v);
	}
	return p;
}

static void replace(agg_state *s, double *p) {
	prom_free(s->p);
	s->p = p;
}

// From the values of one series to planes.
static bool to_planes(agg_state *s, const agg_planes *op) {
	double *p = planes_of(op, s->budget, s->p, s->n);
	if (p == NULL) {
		return false;
	}
	replace(s, p);
	s->single = false;
	return true;
}

// From one step, which stood for all, to n.
static bool widen(agg_state *s, uint32_t planes, uint32_t n) {
	double *p = prom_alloc(s->budget, sizeof(double) * planes * n);
	if (p == NULL) {
		return false;
	}
	for (uint32_t j = 0; j < planes; j++) {
		for (uint32_t k = 0; k < n; k++) {
			p[(size_t)j * n + k] = s->p[j];
		}
	}
	replace(s, p);
	s->n = n;
	return true;
}

// Converts the state to planes that are wide enough for a list of n steps.
static bool prepare(agg_state *s, const agg_planes *op, uint32_t n, char err[PROM_ERROR_BYTES]) {
	uint32_t both = vec_common(s->n, n);
	if (both == 0) {
		snprintf(err, PROM_ERROR_BYTES, "aggregate values: lists of %u and %u values in one group", s->n, n);
		return false;
	}
	if ((s->single && !to_planes(s, op)) || (both > s->n && !widen(s, op->planes, both))) {
		return prom_memory_error(s->budget, err);
	}
	return true;
}

bool agg_state_add(agg_state *s, const agg_planes *op, vec_list l, prom_budget *b, char err[PROM_ERROR_BYTES]) {
	if (s->n == 0) {
		double *p = prom_alloc(b, sizeof(double) * l.n);
		if (p == NULL) {
			return prom_memory_error(b, err);
		}
		memcpy(p, l.v, sizeof(double) * l.n);
		*s = (agg_state){b, p, l.n, true};
		return true;
	}
	if (!prepare(s, op, l.n, err)) {
		return false;
	}
	if (l.n == s->n) {
		op->add(s->p, s->n, s->n, l.v);
		return true;
	}
	for (uint32_t k = 0; k < s->n; k++) {
		op->add(s->p + k, s->n, 1, l.v);
	}
	return true;
}

bool agg_state_move(agg_state *from, agg_state *to, const agg_planes *op, char err[PROM_ERROR_BYTES]) {
	if (from->n == 0) {
		return true;
	}
	if (to->n == 0) {
		*to = *from;
		*from = (agg_state){0};
		return true;
	}
	if (from->single || op->merge == NULL) {
		return agg_state_add(to, op, (vec_list){from->p, from->n}, to->budget, err);
	}
	if (!prepare(to, op, from->n, err)) {
		return false;
	}
	if (from->n == to->n) {
		op->merge(to->p, to->n, to->n, from->p, from->n);
		return true;
	}
	for (uint32_t k = 0; k < to->n; k++) {
		op->merge(to->p + k, to->n, 1, from->p, from->n);
	}
	return true;
}

bool agg_state_result(agg_state *s, const agg_planes *op, double *out, bool *any, char err[PROM_ERROR_BYTES]) {
	if (prom_cancelled(s->budget)) {
		return prom_cancel_error(err);
	}
	double *planes = s->single ? planes_of(op, s->budget, s->p, s->n) : s->p;
	if (planes == NULL) {
		return prom_memory_error(s->budget, err);
	}
	*any = op->finish(planes, s->n, s->n, out);
	if (s->single) {
		prom_free(planes);
	}
	return true;
}

void agg_state_free(agg_state *s) {
	prom_free(s->p);
	*s = (agg_state){0};
}
