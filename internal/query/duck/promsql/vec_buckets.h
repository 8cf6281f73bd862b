// Quantiles of classic histograms: BucketQuantile of Prometheus v0.315.0.
#pragma once

#include "vec.h"

typedef struct {
	double le, count;
} vec_bucket;

// The quantile q of n > 0 buckets ascending by le, none of which is NaN; they are changed. *forced becomes true if counts had to be made
// monotonic by more than the rounding of floats explains.
double vec_bucket_quantile(double q, vec_bucket *buckets, uint32_t n, bool *forced);
