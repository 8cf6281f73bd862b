// Quantiles of classic histograms: BucketQuantile of Prometheus v0.315.0.
#pragma once

#include "../vec/register.h"

typedef struct {
	double le, count;
} agg_bucket;

// The quantile q of n > 0 buckets ascending by le, none of which is NaN; they are changed. *forced becomes true if counts had to be made
// monotonic by more than the rounding of floats explains.
double agg_bucket_quantile(double q, agg_bucket *buckets, uint32_t n, bool *forced);
