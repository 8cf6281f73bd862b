// Registration of the aggregates.
#include "windows.h"

#include <stdio.h>

window_columns window_columns_of(const window_function *f) {
	uint32_t keys = f->form == WINDOW_GRID ? 0 : prom_range_keys(f->fn); // a grid has the parameters, too
	int before = (keys & PROM_KEY_PHI) != 0;
	int after = ((keys & PROM_KEY_DUR) != 0) + ((keys & PROM_KEY_SF) != 0) + ((keys & PROM_KEY_TF) != 0);
	window_columns c = {.ts = before, .value = before + 1, .start = before + 2, .end = before + 2 + (f->form == WINDOW_BOUNDS)};
	c.count = c.end + 1 + after;
	c.parameters[0] = before ? 0 : after > 0 ? c.end + 1 : -1;
	c.parameters[1] = after > 1 ? c.end + 2 : -1;
	return c;
}

static void destroy(duckdb_aggregate_state *states, idx_t n) {
	for (idx_t i = 0; i < n; i++) {
		window_clear((window_state *)states[i]);
	}
}

window_function window_of(duckdb_function_info info) {
	const vec_extra *x = vec_extra_of(info);
	int id = (int)(intptr_t)x->aggregate.extra;
	return (window_function){id / WINDOW_FORMS, (window_form)(id % WINDOW_FORMS), vec_budget_of(x)};
}

int prom_register_windows(duckdb_connection conn, const char *function, size_t len, int64_t budget, char err[PROM_ERROR_BYTES]) {
	int fn = prom_range_find(function, len);
	if (fn < 0) {
		snprintf(err, PROM_ERROR_BYTES, "there is no range function %.*s", (int)len, function);
		return 1;
	}
	char name[64];
	snprintf(name, sizeof name, "prom_%.*s", (int)len, function);
	vec_aggregate forms[WINDOW_FORMS + 1] = {0};
	for (int form = 0; form < WINDOW_FORMS; form++) {
		static const vec_type ends[] = {[WINDOW_BOUNDS] = VEC_TIMESTAMP, [WINDOW_SLIDES] = VEC_INTERVAL, [WINDOW_GRID] = VEC_VARCHAR};
		vec_aggregate *a = &forms[form];
		*a = (vec_aggregate){.name = name, .result = form == WINDOW_GRID ? VEC_LIST : VEC_DOUBLE, .extra = (const void *)(intptr_t)(fn * WINDOW_FORMS + form),
		                     .size = sizeof(window_state), .destroy = destroy, .update = window_update, .combine = window_combine, .finalize = window_finalize};
		window_columns c = window_columns_of(&(window_function){.fn = fn, .form = (window_form)form});
		for (int i = 0; i < c.count; i++) {
			bool time = i == c.ts || (form == WINDOW_BOUNDS && i == c.start);
			a->parameters[i] = i == c.end ? ends[form] : time ? VEC_TIMESTAMP : VEC_DOUBLE;
		}
	}
	const vec_aggregate *const tables[] = {forms, NULL};
	return vec_register_aggregates(conn, tables, (vec_text){0}, budget, err);
}
