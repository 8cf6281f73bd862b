// prom_topk, prom_bottomk and prom_limitk: aggregates that return the chosen series, ascending by
// ordinal, each with its values at the steps where it is chosen.
#include "choose.h"

#include <stdio.h>

#define FIRST_PRUNE 256 // series of limitk that are kept before it drops those that cannot be chosen

typedef struct {
	agg_rows rows; // first, see agg_rows_destroy
	uint32_t k;
	uint32_t prune_at; // limitk: how many rows there are when it drops some again
} state;

static const agg_ranking top = AGG_TOP, bottom = AGG_BOTTOM, limit = AGG_LIMIT;

// The cost is amortised: at least as many rows arrive as stay before the next run.
static bool prune(state *s, const agg_ranking *how, char err[PROM_ERROR_BYTES]) {
	if (*how != AGG_LIMIT || s->rows.count < FIRST_PRUNE || s->rows.count < s->prune_at || s->rows.count <= s->k) {
		return true;
	}
	bool ok = agg_limit_prune(&s->rows, s->k, err);
	s->prune_at = 2 * s->rows.count;
	return ok;
}

static bool add(void *state_, const void *how, const vec_row *row, char err[PROM_ERROR_BYTES]) {
	state *s = state_;
	int64_t k = row->spec->k;
	if (k < 1) {
		return true;
	}
	s->k = k < UINT32_MAX ? (uint32_t)k : UINT32_MAX;
	return agg_rows_add(&s->rows, row, err) && prune(s, how, err);
}

static bool move(void *from, void *to, const void *how, char err[PROM_ERROR_BYTES]) {
	state *a = from, *b = to;
	if (a->rows.count > 0) {
		b->k = a->k;
	}
	return agg_rows_move(&a->rows, &b->rows, err) && prune(b, how, err);
}

// Writes the chosen series of one state as the list of a row.
static bool write_list(const agg_choice *c, const agg_rows *rows, const uint32_t *place, uint32_t chosen, duckdb_vector result, idx_t row,
                       char err[PROM_ERROR_BYTES]) {
	idx_t at = duckdb_list_vector_get_size(result);
	if (duckdb_list_vector_reserve(result, at + chosen) == DuckDBError) {
		snprintf(err, PROM_ERROR_BYTES, "write values: the machine has no memory for them");
		return false;
	}
	duckdb_vector series = duckdb_list_vector_get_child(result), values = duckdb_struct_vector_get_child(series, 1);
	vec_out out;
	if (!vec_out_open(&out, values, (idx_t)chosen * rows->n, err)) {
		return false;
	}
	agg_choice_write(c, rows, place, chosen, vec_out_next(&out));
	uint32_t *ordinals = duckdb_vector_get_data(duckdb_struct_vector_get_child(series, 0));
	for (uint32_t r = 0; r < rows->count; r++) {
		if (place[r] != AGG_NOWHERE) {
			ordinals[at + place[r]] = rows->rows[r].i;
			vec_out_keep(&out, at + place[r], rows->n);
		}
	}
	vec_out_close(&out);
	((duckdb_list_entry *)duckdb_vector_get_data(result))[row] = (duckdb_list_entry){at, chosen};
	duckdb_list_vector_set_size(result, at + chosen);
	return true;
}

static void write_null(duckdb_vector result, idx_t row) {
	((duckdb_list_entry *)duckdb_vector_get_data(result))[row] = (duckdb_list_entry){0};
	vec_set_null(result, row);
}

static bool finish(state *s, agg_ranking how, duckdb_vector result, idx_t row, char err[PROM_ERROR_BYTES]) {
	if (agg_rows_cancelled(&s->rows, err)) {
		return false;
	}
	agg_rows_by_ordinal(&s->rows);
	agg_choice choice;
	if (!agg_choose_rows(how, &s->rows, s->k, &choice, err)) {
		return false;
	}
	uint32_t *place = agg_rows_scratch(&s->rows, s->rows.count, sizeof *place, err);
	bool ok = place != NULL;
	uint32_t chosen = ok ? agg_choice_places(&choice, &s->rows, place) : 0;
	if (ok && chosen == 0) {
		write_null(result, row);
	} else {
		ok = ok && write_list(&choice, &s->rows, place, chosen, result, row, err);
	}
	prom_free(place);
	agg_choice_free(&choice);
	return ok;
}

static void finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset) {
	agg_ranking how = *(const agg_ranking *)vec_aggregate_of(info)->extra;
	char err[PROM_ERROR_BYTES];
	for (idx_t i = 0; i < count; i++) {
		state *s = (state *)states[i];
		if (s->rows.count == 0) {
			write_null(result, offset + i);
		} else if (!finish(s, how, result, offset + i, err)) {
			duckdb_aggregate_function_set_error(info, err);
			return;
		}
	}
}

#define CHOICE(id, how) \
	{ .name = id, .parameters = {VEC_UINTEGER, VEC_LIST, VEC_VARCHAR}, .result = VEC_CHOSEN, .extra = how, .size = sizeof(state), \
	  .destroy = agg_rows_destroy, .keys = PROM_KEY_K, .add = add, .move = move, .finalize = finalize }

const vec_aggregate agg_table_topk[] = {CHOICE("prom_topk", &top), CHOICE("prom_bottomk", &bottom), CHOICE("prom_limitk", &limit), {0}};
