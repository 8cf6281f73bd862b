// The aggregates over the samples of a series: for each range function one over the stored columns
// and one over values.
#include "../vec/register.h"
#include "aggregates.h"

VEC_STATE(samples_state, 0)

static void destroy(duckdb_aggregate_state *states, idx_t n) {
	const prom_spec *spec = NULL; // that of the states so far, refs of them
	int64_t refs = 0;
	for (idx_t i = 0; i < n; i++) {
		samples_state *s = (samples_state *)states[i];
		samples_clear(s);
		if (s->spec != spec) {
			prom_spec_put(spec, refs);
			spec = s->spec;
			refs = 0;
		}
		refs++;
		s->spec = NULL;
	}
	prom_spec_put(spec, refs);
}

static void combine(duckdb_function_info info, duckdb_aggregate_state *src, duckdb_aggregate_state *dst, idx_t n) {
	(void)info;
	for (idx_t i = 0; i < n; i++) {
		samples_take((samples_state *)dst[i], (samples_state *)src[i]);
	}
}

#define FUNCTION(id, name, kernel, keys) [PROM_##id] = {{PROM_##id, false}, {PROM_##id, true}},
static const samples_function functions[PROM_RANGE_FUNCTIONS][2] = {PROM_RANGE_LIST(FUNCTION)};
#undef FUNCTION

#define CALLBACKS state_size, state_init, samples_update, combine, samples_finalize, destroy
#define FUNCTION(id, name, kernel, keys) \
	{"prom_" name, {VEC_UBIGINT, VEC_TIMESTAMP, VEC_BIGINT, VEC_DOUBLE, VEC_VARCHAR}, VEC_LIST, false, &functions[PROM_##id][0], CALLBACKS}, \
	{"prom_" name, {VEC_UBIGINT, VEC_TIMESTAMP, VEC_DOUBLE, VEC_VARCHAR}, VEC_LIST, false, &functions[PROM_##id][1], CALLBACKS},

static const vec_aggregate table[] = {PROM_RANGE_LIST(FUNCTION) {0}};

int prom_register_samples(duckdb_connection conn, char err[PROM_ERROR_BYTES]) {
	const vec_aggregate *const tables[] = {table, NULL};
	return vec_register_aggregates(conn, tables, (vec_text){0}, 0, err);
}
