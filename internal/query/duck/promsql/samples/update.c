// Rows of a chunk on their way into the states.
#include "../vec/register.h"
#include "aggregates.h"

#include <stdio.h>

typedef struct {
	samples_rows rows;
	const duckdb_string_t *spec_text;
	uint64_t *valid[5]; // NULL: all rows are
	int columns;
	uint32_t keys;         // that the spec must have
	const prom_spec *spec; // of the text at parsed; a reference
	idx_t parsed;
	int64_t held; // references of new states that spec has not yet
} chunk;

static chunk open_chunk(duckdb_data_chunk in, const samples_function *f) {
	chunk c = {.columns = f->decoded ? 4 : 5, .keys = prom_range_keys(f->fn)};
	const void *data[5];
	for (int i = 0; i < c.columns; i++) {
		duckdb_vector v = duckdb_data_chunk_get_vector(in, (idx_t)i);
		data[i] = duckdb_vector_get_data(v);
		c.valid[i] = duckdb_vector_get_validity(v);
	}
	c.rows.rank = data[0];
	c.rows.ts = data[1];
	if (f->decoded) {
		c.rows.value = data[2];
	} else {
		c.rows.v_int = data[2];
		c.rows.v_div = data[3];
	}
	c.spec_text = data[c.columns - 1];
	return c;
}

static void close_chunk(chunk *c) {
	if (c->spec != NULL && c->held > 0) {
		prom_spec_hold(c->spec, c->held);
	}
	prom_spec_put(c->spec, 1);
	c->spec = NULL;
	c->held = 0;
}

// Returns the spec of row i. Rows of a constant are equal byte by byte, so it is looked up once per
// chunk.
static const prom_spec *spec_of(chunk *c, idx_t i, char err[PROM_ERROR_BYTES]) {
	if (c->spec != NULL && memcmp(&c->spec_text[i], &c->spec_text[c->parsed], sizeof *c->spec_text) == 0) {
		return c->spec;
	}
	close_chunk(c);
	duckdb_string_t text = c->spec_text[i];
	c->spec = prom_spec_get(duckdb_string_t_data(&text), duckdb_string_t_length(text), c->keys, 0, err);
	c->parsed = i;
	return c->spec;
}

static bool row_is_valid(const chunk *c, idx_t i) {
	for (int k = 0; k < c->columns; k++) {
		if (c->valid[k] != NULL && !(c->valid[k][i / 64] >> (i % 64) & 1)) {
			return false;
		}
	}
	return true;
}

// The end of the rows from i on that go to the same state as row i and are all valid.
static idx_t same_state(const chunk *c, const duckdb_aggregate_state *states, idx_t i, idx_t n, bool nulls) {
	idx_t e = i + 1;
	while (e < n && states[e] == states[i] && (!nulls || row_is_valid(c, e))) {
		e++;
	}
	return e;
}

// Gives rows i..e-1 to a state. A state's spec is that of its first row.
static bool append(chunk *c, samples_state *s, idx_t i, idx_t e, char err[PROM_ERROR_BYTES]) {
	if (s->spec == NULL) {
		s->spec = spec_of(c, i, err);
		if (s->spec == NULL) {
			return false;
		}
		c->held++;
	}
	if (s->n + (e - i) > UINT32_MAX) {
		snprintf(err, PROM_ERROR_BYTES, "a series has more than %lu samples", (unsigned long)UINT32_MAX);
		return false;
	}
	if (!samples_append(s, &c->rows, i, e)) {
		return prom_memory_error(s->spec->budget, err);
	}
	return true;
}

void samples_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states) {
	chunk c = open_chunk(in, vec_extra_of(info)->extra);
	idx_t n = duckdb_data_chunk_get_size(in);
	bool nulls = false;
	for (int k = 0; k < c.columns; k++) {
		nulls = nulls || c.valid[k] != NULL;
	}
	char err[PROM_ERROR_BYTES];
	bool cancelled = false;
	for (idx_t i = 0, e; i < n && !cancelled; i = e) {
		e = i + 1;
		if (nulls && !row_is_valid(&c, i)) {
			continue;
		}
		e = same_state(&c, states, i, n, nulls);
		samples_state *s = (samples_state *)states[i];
		if (!append(&c, s, i, e, err)) {
			duckdb_aggregate_function_set_error(info, err);
			break;
		}
		cancelled = prom_cancelled(s->spec->budget);
	}
	if (cancelled) {
		prom_cancel_error(err);
		duckdb_aggregate_function_set_error(info, err);
	}
	close_chunk(&c);
}
