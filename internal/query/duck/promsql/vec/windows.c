// The aggregates over windows: rows into states, states into values.
#include "windows.h"

#include "../kernel/kernel.h"
#include "windowstate.h"

#include <stdio.h>

typedef enum { WINDOW_BOUNDS, WINDOW_SLIDES, WINDOW_GRID, WINDOW_FORMS } window_form; // the last one is their number

// What an aggregate computes, and the budget of its memory.
typedef struct {
	int fn;
	window_form form;
	prom_budget *budget;
} window_function;

// Most parameters of an aggregate.
#define WINDOW_COLUMNS 6

// Positions of parameters. end is range in the second form, and grid in the third.
typedef struct {
	int ts, value, start, end, count;
	int parameters[2]; // -1: none
} window_columns;

static window_columns columns_of(const window_function *f) {
	uint32_t keys = f->form == WINDOW_GRID ? 0 : prom_range_keys(f->fn); // a grid has the parameters, too
	int before = (keys & PROM_KEY_PHI) != 0;
	int after = ((keys & PROM_KEY_DUR) != 0) + ((keys & PROM_KEY_SF) != 0) + ((keys & PROM_KEY_TF) != 0);
	window_columns c = {.ts = before, .value = before + 1, .start = before + 2, .end = before + 2 + (f->form == WINDOW_BOUNDS)};
	c.count = c.end + 1 + after;
	c.parameters[0] = before ? 0 : after > 0 ? c.end + 1 : -1;
	c.parameters[1] = after > 1 ? c.end + 2 : -1;
	return c;
}

// That of a call.
static window_function window_of(duckdb_function_info info) {
	const vec_extra *x = vec_extra_of(info);
	int id = (int)(intptr_t)x->aggregate.extra;
	return (window_function){id / WINDOW_FORMS, (window_form)(id % WINDOW_FORMS), vec_budget_of(x)};
}

typedef struct {
	window_columns at;
	vec_column columns[WINDOW_COLUMNS];
	bool nulls;      // any of them may have a NULL
	vec_specs grids; // of a grid
} chunk;

static chunk open_chunk(duckdb_data_chunk in, const window_function *f) {
	chunk c = {.at = columns_of(f)};
	if (f->form == WINDOW_GRID) {
		vec_specs_open(&c.grids, in, (idx_t)c.at.end, prom_range_keys(f->fn), 0, f->budget);
	}
	for (int i = 0; i < c.at.count; i++) {
		c.columns[i] = vec_column_of(in, (idx_t)i);
		c.nulls |= c.columns[i].validity != NULL;
	}
	return c;
}

// Milliseconds of a time or a length in µs, rounded down.
static int64_t ms_of(int64_t us) { return us / 1000 - (us % 1000 < 0); }

static int64_t time_at(const chunk *c, int column, idx_t i) { return ms_of(((const int64_t *)c->columns[column].data)[i]); }

// The windows with the function's parameters.
static prom_spec spec_of(const window_function *f, const window_shape *w) {
	uint32_t keys = prom_range_keys(f->fn);
	prom_spec s = {.keys = keys, .start = w->end - (w->n - 1) * w->step, .step = w->step, .n = w->n, .range = w->window, .shift = w->shift,
	               .range_s = prom_range_seconds(w->window), .budget = f->budget};
	s.phi = keys & PROM_KEY_PHI ? w->parameters[0] : 0;
	s.dur = keys & PROM_KEY_DUR ? w->parameters[0] : 0;
	s.sf = keys & PROM_KEY_SF ? w->parameters[0] : 0;
	s.tf = keys & PROM_KEY_TF ? w->parameters[1] : 0;
	return s;
}

static bool fail(char err[PROM_ERROR_BYTES], const char *why) {
	snprintf(err, PROM_ERROR_BYTES, "%s", why);
	return false;
}

// Reads the shape of a row's window. false: with a message.
static bool shape_at(chunk *c, const window_function *f, idx_t i, window_shape *w, char err[PROM_ERROR_BYTES]) {
	*w = (window_shape){.step = 1, .n = 1};
	for (int k = 0; k < 2; k++) {
		w->parameters[k] = c->at.parameters[k] < 0 ? 0 : ((const double *)c->columns[c->at.parameters[k]].data)[i];
	}
	if (f->form == WINDOW_GRID) {
		const prom_spec *g = vec_specs_at(&c->grids, i, err);
		if (g == NULL) {
			return false;
		}
		if (__builtin_add_overflow((g->n - 1) * g->step, g->range, &w->range)) {
			return fail(err, "the windows of the grid reach over more than 64 bits of ms");
		}
		w->end = g->start + (g->n - 1) * g->step;
		w->step = g->step;
		w->n = g->n;
		w->window = g->range;
		w->shift = g->shift;
		w->parameters[0] = g->keys & PROM_KEY_PHI ? g->phi : g->keys & PROM_KEY_DUR ? g->dur : g->sf;
		w->parameters[1] = g->tf;
		return true;
	}
	if (f->form == WINDOW_SLIDES) {
		duckdb_interval range = ((const duckdb_interval *)c->columns[c->at.end].data)[i];
		if (range.months != 0) {
			return fail(err, "the range of a window has months, which differ in length; want days or less");
		}
		w->end = time_at(c, c->at.ts, i);
		w->range = (int64_t)range.days * 86400000 + ms_of(range.micros);
	} else {
		w->end = time_at(c, c->at.end, i);
		w->range = w->end - time_at(c, c->at.start, i);
	}
	w->window = w->range;
	return true;
}

// Adds a row to its state. false: with a message.
static bool add_row(chunk *c, const window_function *f, window_state *s, idx_t i, char err[PROM_ERROR_BYTES]) {
	for (int k = 0; c->nulls && k < c->at.count; k++) { // a row without a value has a time, to which a window slides
		if (!vec_valid(c->columns[k].validity, i) && (k != c->at.value || f->form != WINDOW_SLIDES)) {
			return true;
		}
	}
	window_shape w;
	if (!shape_at(c, f, i, &w, err)) {
		return false;
	}
	if (s->shape.range == 0) {
		prom_spec spec = spec_of(f, &w);
		const char *wrong = prom_spec_wrong(&spec);
		if (wrong != NULL) {
			return fail(err, wrong);
		}
	}
	if (!window_extend(s, &w, f->form == WINDOW_SLIDES)) {
		return fail(err, f->form == WINDOW_SLIDES ? "the range and the parameters differ among the rows of a window" : "the bounds or the grid, and the parameters of the window differ among the rows of a group");
	}
	int64_t ts = time_at(c, c->at.ts, i);
	double v = ((const double *)c->columns[c->at.value].data)[i];
	if (!vec_valid(c->columns[c->at.value].validity, i) || (prom_is_absent(v) && !prom_range_sees_stale(f->fn)) || ts > s->shape.end) {
		return true;
	}
	return window_add(s, f->budget, &ts, &v, 1) || prom_memory_error(f->budget, err);
}

static void update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states) {
	const window_function function = window_of(info), *f = &function;
	chunk c = open_chunk(in, f);
	idx_t n = duckdb_data_chunk_get_size(in);
	char err[PROM_ERROR_BYTES];
	bool ok = !prom_cancelled(f->budget) || prom_cancel_error(err);
	for (idx_t i = 0; i < n && ok; i++) {
		ok = add_row(&c, f, (window_state *)states[i], i, err);
	}
	vec_specs_close(&c.grids);
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
	}
}

// The source stays as it is: windows that overlap have sources in common.
static void combine(duckdb_function_info info, duckdb_aggregate_state *src, duckdb_aggregate_state *dst, idx_t n) {
	const window_function function = window_of(info), *f = &function;
	char err[PROM_ERROR_BYTES];
	bool ok = true;
	for (idx_t i = 0; i < n && ok; i++) {
		const window_state *from = (const window_state *)src[i];
		window_state *to = (window_state *)dst[i];
		if (from->shape.range == 0) {
			continue;
		}
		if (prom_cancelled(f->budget)) {
			ok = prom_cancel_error(err);
		} else if (!window_extend(to, &from->shape, f->form == WINDOW_SLIDES)) {
			ok = fail(err, "the window's bounds, range or parameters differ among the rows of a group");
		} else if (!window_add(to, f->budget, from->ts, from->v, from->n)) {
			ok = prom_memory_error(f->budget, err);
		}
	}
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
	}
}

// Evaluates a state. Returns 1 with a value at any step, 0 without one, -1 with a message. The
// state keeps its samples: DuckDB may add rows and finalize it again.
static int value_of(const window_function *f, window_state *s, prom_kernel *kernel, double *out, char err[PROM_ERROR_BYTES]) {
	if (s->n == 0) {
		return 0;
	}
	if (!window_sort(s, f->budget)) {
		prom_memory_error(f->budget, err);
		return -1;
	}
	kernel->spec = spec_of(f, &s->shape);
	double share = (double)s->shape.window / (double)s->shape.range; // windows have about as many samples each
	if (!prom_windows_fit(&kernel->spec, (int64_t)(s->n * share), err)) {
		return -1;
	}
	int result = prom_kernel_eval(kernel, s->ts, s->v, s->n, 0, out);
	if (result == PROM_KERNEL_REFUSED) {
		prom_memory_error(f->budget, err);
	}
	return result > PROM_KERNEL_PRESENT ? -1 : result;
}

static void finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset) {
	const window_function function = window_of(info), *f = &function;
	bool lists = f->form == WINDOW_GRID;
	prom_kernel kernel = prom_kernel_of(f->fn, &(prom_spec){.budget = f->budget});
	char err[PROM_ERROR_BYTES];
	idx_t elements = 0;
	for (idx_t i = 0; i < count && lists; i++) {
		const window_state *s = (const window_state *)states[i];
		elements += s->n == 0 ? 0 : (idx_t)s->shape.n;
	}
	vec_out out;
	bool ok = !lists || vec_out_open(&out, result, elements, err);
	for (idx_t i = 0; i < count && ok; i++) {
		window_state *s = (window_state *)states[i];
		int present = value_of(f, s, &kernel, lists ? vec_out_next(&out) : (double *)duckdb_vector_get_data(result) + offset + i, err);
		if (prom_cancelled(f->budget)) {
			ok = prom_cancel_error(err);
		} else if (present < 0) {
			ok = false;
		} else if (lists) {
			vec_out_put(&out, offset + i, (uint32_t)s->shape.n, present > 0);
		} else if (present == 0) {
			vec_set_null(result, offset + i);
		}
	}
	prom_kernel_clear(&kernel);
	if (lists && ok) {
		vec_out_close(&out);
	}
	if (!ok) {
		duckdb_aggregate_function_set_error(info, err);
	}
}

static void destroy(duckdb_aggregate_state *states, idx_t n) {
	for (idx_t i = 0; i < n; i++) {
		window_clear((window_state *)states[i]);
	}
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
		                     .size = sizeof(window_state), .destroy = destroy, .update = update, .combine = combine, .finalize = finalize};
		window_columns c = columns_of(&(window_function){.fn = fn, .form = (window_form)form});
		for (int i = 0; i < c.count; i++) {
			bool time = i == c.ts || (form == WINDOW_BOUNDS && i == c.start);
			a->parameters[i] = i == c.end ? ends[form] : time ? VEC_TIMESTAMP : VEC_DOUBLE;
		}
	}
	const vec_aggregate *const tables[] = {forms, NULL};
	return vec_register_aggregates(conn, tables, (vec_text){0}, budget, err);
}
