// Quantiles of classic histograms: BucketQuantile of Prometheus v0.315.0.
#pragma once

#include "../vec/register.h"

typedef struct {
	double le, count;
} agg_bucket;

// Returns the quantile q of n > 0 buckets, which ascend by le, have no NaN bound, and are modified.
// Sets *forced if a count was raised by more than rounding explains.
double agg_bucket_quantile(double q, agg_bucket *buckets, uint32_t n, bool *forced);
