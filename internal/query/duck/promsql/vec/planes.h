// Aggregates across series whose state is a few numbers per step for any number of series: sum,
// avg, min, max and others.
#pragma once

#include "register.h"

// The state consists of planes: number j of step k is p[j*pitch + k]. The functions process n steps
// from p on.
typedef struct {
	uint32_t planes;
	uint64_t initial[4];                                                                     // bits of each plane's numbers before the first series
	void (*add)(double *p, size_t pitch, uint32_t n, const double *v);                       // one more series
	void (*merge)(double *p, size_t pitch, uint32_t n, const double *q, size_t other_pitch); // another state of other series; NULL: as add
	bool (*finish)(const double *p, size_t pitch, uint32_t n, double *out);                  // says whether any step has a value
	const double *empty;                                                                     // the result over no series at every step; NULL: none
} agg_planes;

// Sets n steps, which is the pitch, to the initial numbers.
void agg_planes_init(const agg_planes *op, double *p, uint32_t n);

// The finish of one plane that holds the results.
bool agg_planes_results(const double *p, size_t pitch, uint32_t n, double *out);

extern const vec_aggregate agg_table_planes[]; // planes.c, ended by an entry without a name; extra is an agg_planes

extern const agg_planes agg_planes_sum, agg_planes_avg;                                             // sum.c
extern const agg_planes agg_planes_min, agg_planes_max, agg_planes_count, agg_planes_group;         // extreme.c
extern const agg_planes agg_planes_stddev, agg_planes_stdvar;                                       // spread.c
extern const agg_planes agg_planes_absent, agg_planes_scalar;                                       // absent.c
