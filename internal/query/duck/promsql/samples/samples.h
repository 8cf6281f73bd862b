// The state of the aggregates: the samples of one series so far.
#pragma once

#include "../kernel/range.h"

// A stretch of samples of one rank, in the order of their arrival. Times are offsets from base, so
// that a sample takes 12 bytes; a sample that no offset reaches begins another run.
typedef struct samples_run {
	struct samples_run *next;
	uint64_t rank;
	int64_t base; // ms
	uint32_t n, cap;
	bool sorted; // strictly ascending
	uint32_t *at; // ms since base; behind v, in this allocation
	double v[];
} samples_run;

// The state of an aggregate, in DuckDB's memory, which may move it. All zero: no sample yet.
typedef struct {
	const prom_spec *spec; // a reference; NULL before the first sample
	samples_run *head, *tail;  // in the order of arrival
	uint64_t n;
} samples_state;

// Rows of a chunk. Either v_int and v_div or value is there.
typedef struct {
	const uint64_t *rank;
	const int64_t *ts; // µs
	const int64_t *v_int;
	const double *v_div;
	const double *value;
} samples_rows;

// Appends rows i..j-1 to a state that has a spec. false: refused by the budget.
bool samples_append(samples_state *s, const samples_rows *rows, uint64_t i, uint64_t j);

// Moves all samples of src behind those of dst.
void samples_take(samples_state *dst, samples_state *src);

// Frees the samples.
void samples_clear(samples_state *s);

// Memory for sorting series one after another. Initialise the budgets and zero the rest.
typedef struct {
	prom_scratch pieces, series, merged;
} samples_order;

// The samples of a state ascending by ts, of equal ts only the one of the largest rank; without
// stale markers unless keep_stale. *ts and *v stay valid until the next call with o or a change of
// s. false: refused by the budget.
bool samples_sorted(const samples_state *s, samples_order *o, bool keep_stale, const int64_t **ts, const double **v, uint32_t *n);
