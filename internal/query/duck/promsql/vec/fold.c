#include "state.h"

#include "fold.h"

#include <stdio.h>
#include <stdlib.h>

struct prom_fold {
	const agg_planes *op;
	prom_budget *budget;
	agg_state *states; // by group
	uint32_t groups, steps;
};

static const agg_planes *find(vec_text name) {
	for (const vec_aggregate *a = agg_table_planes; a->name != NULL; a++) {
		if (vec_text_is(name, a->name + strlen("prom_"))) {
			return a->extra;
		}
	}
	return NULL;
}

prom_fold *prom_fold_open(const char *name, size_t len, uint32_t groups, uint32_t steps, int64_t budget, char err[PROM_ERROR_BYTES]) {
	const agg_planes *op = find((vec_text){name, len});
	prom_budget *b = op == NULL || steps == 0 || steps > PROM_MAX_STEPS ? NULL : prom_budget_acquire(budget);
	if (b == NULL) {
		snprintf(err, PROM_ERROR_BYTES, "aggregate %u steps by \"%.*s\" under budget %lld: there is no such thing", steps, (int)len, name, (long long)budget);
		return NULL;
	}
	prom_fold *f = calloc(1, sizeof *f);
	agg_state *states = prom_alloc(b, groups * sizeof *states);
	if (f == NULL || states == NULL) {
		prom_memory_error(b, err);
		free(f);
		prom_free(states);
		prom_budget_release(b);
		return NULL;
	}
	memset(states, 0, groups * sizeof *states);
	*f = (prom_fold){op, b, states, groups, steps};
	return f;
}

void prom_fold_close(prom_fold *f) {
	for (uint32_t g = 0; g < f->groups; g++) {
		agg_state_free(&f->states[g]);
	}
	prom_free(f->states);
	prom_budget_release(f->budget);
	free(f);
}

bool prom_fold_add(prom_fold *f, uint32_t group, const double *v, char err[PROM_ERROR_BYTES]) {
	return agg_state_add(&f->states[group], f->op, (vec_list){v, f->steps}, f->budget, err);
}

bool prom_fold_move(prom_fold *from, prom_fold *to, char err[PROM_ERROR_BYTES]) {
	for (uint32_t g = 0; g < from->groups; g++) {
		if (!agg_state_move(&from->states[g], &to->states[g], from->op, err)) {
			return false;
		}
		agg_state_free(&from->states[g]);
	}
	return true;
}

bool prom_fold_result(prom_fold *f, uint32_t group, double *out, bool *any, char err[PROM_ERROR_BYTES]) {
	if (f->states[group].n > 0) {
		return agg_state_result(&f->states[group], f->op, out, any, err);
	}
	*any = f->op->empty != NULL;
	for (uint32_t k = 0; *any && k < f->steps; k++) {
		out[k] = *f->op->empty;
	}
	return true;
}

prom_budget *prom_fold_budget(const prom_fold *f) { return f->budget; }
