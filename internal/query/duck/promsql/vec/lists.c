#include "lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

prom_lists *prom_lists_open(uint32_t count, uint32_t steps, int64_t budget, char err[PROM_ERROR_BYTES]) {
	prom_budget *b = prom_budget_acquire(budget);
	if (b == NULL) {
		snprintf(err, PROM_ERROR_BYTES, "aggregate lists: there is no budget %lld", (long long)budget);
		return NULL;
	}
	prom_lists *l = calloc(1, sizeof *l);
	agg_row *rows = l == NULL ? NULL : prom_alloc(b, count * sizeof *rows);
	if (rows == NULL) {
		prom_memory_error(b, err);
		free(l);
		prom_budget_release(b);
		return NULL;
	}
	// Go writes pointers here, and its collector follows what they replace.
	memset(rows, 0, count * sizeof *rows);
	l->rows = (agg_rows){.budget = b, .rows = rows, .count = count, .room = count, .n = steps};
	return l;
}

void prom_lists_close(prom_lists *l) {
	prom_budget *b = l->rows.budget;
	agg_choice_free(&l->choice);
	prom_free(l->place);
	prom_free(l->rows.rows);
	free(l);
	prom_budget_release(b);
}

bool prom_lists_choose(prom_lists *l, const char *op, size_t len, uint32_t k, char err[PROM_ERROR_BYTES]) {
	vec_text name = {op, len};
	agg_ranking how = vec_text_is(name, "topk") ? AGG_TOP : vec_text_is(name, "bottomk") ? AGG_BOTTOM : AGG_LIMIT;
	l->place = agg_rows_scratch(&l->rows, l->rows.count, sizeof *l->place, err);
	if (l->place == NULL || agg_rows_cancelled(&l->rows, err) || !agg_choose_rows(how, &l->rows, k, &l->choice, err)) {
		return false;
	}
	l->chosen = agg_choice_places(&l->choice, &l->rows, l->place);
	return true;
}
