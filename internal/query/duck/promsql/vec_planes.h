// Aggregates across series whose state is a few numbers per step, whatever the number of series: sum, avg, min, max and so on.
#pragma once

#include "vec.h"

// The state's numbers lie in planes: number j of step k is p[j*pitch + k]. The functions work on n steps from p on.
typedef struct {
	uint32_t planes;
	void (*init)(double *p, size_t pitch, uint32_t n);
	void (*add)(double *p, size_t pitch, uint32_t n, const double *v);                       // one more series
	void (*merge)(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch); // another state of other series
	bool (*finish)(const double *p, size_t pitch, uint32_t n, double *out);                  // says whether any step has a value
	uint32_t required;                                                                       // keys of the spec
	const double *empty;                                                                     // the result over no series at every step; NULL: none
} vec_planes;

extern const vec_planes vec_planes_sum, vec_planes_avg;                                             // vec_sum.c
extern const vec_planes vec_planes_min, vec_planes_max, vec_planes_count, vec_planes_group;         // vec_extreme.c
extern const vec_planes vec_planes_stddev, vec_planes_stdvar;                                       // vec_spread.c
extern const vec_planes vec_planes_absent, vec_planes_scalar;                                       // vec_absent.c

// The callbacks of the overloads with an ordinal (vec_ordered.c); their extra is a vec_planes too.
idx_t vec_ordered_size(duckdb_function_info info);
void vec_ordered_init(duckdb_function_info info, duckdb_aggregate_state s);
void vec_ordered_update(duckdb_function_info info, duckdb_data_chunk in, duckdb_aggregate_state *states);
void vec_ordered_combine(duckdb_function_info info, duckdb_aggregate_state *from, duckdb_aggregate_state *to, idx_t count);
void vec_ordered_finalize(duckdb_function_info info, duckdb_aggregate_state *states, duckdb_vector result, idx_t count, idx_t offset);
