#include "vec.h"

#include <stdio.h>

vec_column vec_column_of(duckdb_data_chunk chunk, idx_t column) {
	duckdb_vector v = duckdb_data_chunk_get_vector(chunk, column);
	return (vec_column){duckdb_vector_get_data(v), duckdb_vector_get_validity(v)};
}

// Whether the bits [at, at+n) are all set.
static bool all_set(const uint64_t *bits, idx_t at, idx_t n) {
	for (idx_t end = at + n; at < end;) {
		idx_t word = at / 64, from = at % 64, to = end - word * 64 < 64 ? end - word * 64 : 64;
		uint64_t wanted = (to == 64 ? ~UINT64_C(0) : (UINT64_C(1) << to) - 1) & ~((UINT64_C(1) << from) - 1);
		if ((bits[word] & wanted) != wanted) {
			return false;
		}
		at = (word + 1) * 64;
	}
	return true;
}

bool vec_lists_open(vec_lists *l, duckdb_data_chunk chunk, idx_t column, char err[PROM_ERROR_BYTES]) {
	duckdb_vector v = duckdb_data_chunk_get_vector(chunk, column), child = duckdb_list_vector_get_child(v);
	*l = (vec_lists){duckdb_vector_get_data(v), duckdb_vector_get_data(child), duckdb_vector_get_validity(v)};
	const uint64_t *elements = duckdb_vector_get_validity(child);
	idx_t rows = duckdb_data_chunk_get_size(chunk);
	for (idx_t i = 0; i < rows; i++) {
		if (!vec_valid(l->validity, i)) {
			continue;
		}
		if (l->at[i].length > PROM_MAX_STEPS) {
			snprintf(err, PROM_ERROR_BYTES, "read values: a list has %llu elements, more than %d", (unsigned long long)l->at[i].length, PROM_MAX_STEPS);
			return false;
		}
		if (elements != NULL && !all_set(elements, l->at[i].offset, l->at[i].length)) {
			snprintf(err, PROM_ERROR_BYTES, "read values: a list has a NULL element");
			return false;
		}
	}
	return true;
}

bool vec_out_open(vec_out *o, duckdb_vector vector, idx_t elements, char err[PROM_ERROR_BYTES]) {
	idx_t size = duckdb_list_vector_get_size(vector);
	if (duckdb_list_vector_reserve(vector, size + elements) == DuckDBError) {
		snprintf(err, PROM_ERROR_BYTES, "write values: the machine has no memory for them");
		return false;
	}
	*o = (vec_out){vector, duckdb_vector_get_data(vector), duckdb_vector_get_data(duckdb_list_vector_get_child(vector)), size};
	return true;
}

void vec_out_keep(vec_out *o, idx_t row, uint32_t n) {
	o->at[row] = (duckdb_list_entry){o->size, n};
	o->size += n;
}

void vec_out_null(vec_out *o, idx_t row) {
	o->at[row] = (duckdb_list_entry){o->size, 0};
	vec_set_null(o->vector, row);
}

void vec_out_close(vec_out *o) { duckdb_list_vector_set_size(o->vector, o->size); }

void vec_specs_open(vec_specs *s, duckdb_data_chunk chunk, idx_t column, uint32_t required, uint32_t optional, prom_budget *own) {
	vec_column c = vec_column_of(chunk, column);
	*s = (vec_specs){.column = c.data, .validity = c.validity, .required = required, .optional = optional, .own = own};
}

void vec_specs_close(vec_specs *s) {
	if (s->open && s->own == NULL) {
		prom_spec_close(&s->spec);
	}
	s->open = false;
}

const prom_spec *vec_specs_at(vec_specs *s, idx_t row, char err[PROM_ERROR_BYTES]) {
	if (s->open && memcmp(&s->last, &s->column[row], sizeof s->last) == 0 && vec_valid(s->validity, row)) {
		return &s->spec;
	}
	vec_specs_close(s);
	if (!vec_valid(s->validity, row)) {
		snprintf(err, PROM_ERROR_BYTES, "parse spec: it is NULL");
		return NULL;
	}
	vec_text t = vec_text_at(s->column, row);
	if (!prom_spec_parse(&s->spec, t.text, t.len, s->required, s->optional, err)) {
		return NULL;
	}
	if (s->own != NULL) {
		prom_spec_close(&s->spec);
		s->spec.budget = s->own;
	}
	s->open = true;
	s->last = s->column[row];
	if (prom_cancelled(s->spec.budget)) {
		prom_cancel_error(err);
		return NULL;
	}
	return &s->spec;
}

bool vec_constant_text(duckdb_data_chunk in, idx_t column, const char *what, vec_text *text, char err[PROM_ERROR_BYTES]) {
	vec_column c = vec_column_of(in, column);
	const duckdb_string_t *texts = c.data;
	for (idx_t i = 0, rows = duckdb_data_chunk_get_size(in); i < rows; i++) {
		if (!vec_valid(c.validity, i)) {
			snprintf(err, PROM_ERROR_BYTES, "find %s: its name is NULL", what);
			return false;
		}
		vec_text t = vec_text_at(texts, i);
		if (i == 0) {
			*text = t;
		} else if (t.len != text->len || memcmp(t.text, text->text, t.len) != 0) {
			snprintf(err, PROM_ERROR_BYTES, "find %s: its name is not the same in all rows", what);
			return false;
		}
	}
	return true;
}

bool vec_unknown(const char *what, vec_text name, char err[PROM_ERROR_BYTES]) {
	snprintf(err, PROM_ERROR_BYTES, "find %s: there is no \"%.*s\"", what, (int)(name.len > 48 ? 48 : name.len), name.text);
	return false;
}
