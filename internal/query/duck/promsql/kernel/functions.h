// The range functions: constant, name, kernel, spec keys beside the grid and range. INSTANT is the
// latest sample of the window, absent where that is a stale marker.
#pragma once

#define PROM_RANGE_LIST(X) \
	X(INSTANT, "instant", prom_range_pick, 0) \
	X(TIMESTAMP, "timestamp", prom_range_pick, 0) \
	X(RATE, "rate", prom_range_rate, 0) \
	X(INCREASE, "increase", prom_range_rate, 0) \
	X(DELTA, "delta", prom_range_rate, 0) \
	X(IRATE, "irate", prom_range_pick, 0) \
	X(IDELTA, "idelta", prom_range_pick, 0) \
	X(DERIV, "deriv", prom_range_trend, 0) \
	X(PREDICT_LINEAR, "predict_linear", prom_range_trend, PROM_KEY_DUR) \
	X(CHANGES, "changes", prom_range_flips, 0) \
	X(RESETS, "resets", prom_range_flips, 0) \
	X(AVG_OVER_TIME, "avg_over_time", prom_range_sum, 0) \
	X(MIN_OVER_TIME, "min_over_time", prom_range_extreme, 0) \
	X(MAX_OVER_TIME, "max_over_time", prom_range_extreme, 0) \
	X(SUM_OVER_TIME, "sum_over_time", prom_range_sum, 0) \
	X(COUNT_OVER_TIME, "count_over_time", prom_range_pick, 0) \
	X(LAST_OVER_TIME, "last_over_time", prom_range_pick, 0) \
	X(FIRST_OVER_TIME, "first_over_time", prom_range_pick, 0) \
	X(PRESENT_OVER_TIME, "present_over_time", prom_range_pick, 0) \
	X(STDDEV_OVER_TIME, "stddev_over_time", prom_range_sum, 0) \
	X(STDVAR_OVER_TIME, "stdvar_over_time", prom_range_sum, 0) \
	X(MAD_OVER_TIME, "mad_over_time", prom_range_order, 0) \
	X(QUANTILE_OVER_TIME, "quantile_over_time", prom_range_order, PROM_KEY_PHI) \
	X(TS_OF_MIN_OVER_TIME, "ts_of_min_over_time", prom_range_extreme, 0) \
	X(TS_OF_MAX_OVER_TIME, "ts_of_max_over_time", prom_range_extreme, 0) \
	X(TS_OF_FIRST_OVER_TIME, "ts_of_first_over_time", prom_range_pick, 0) \
	X(TS_OF_LAST_OVER_TIME, "ts_of_last_over_time", prom_range_pick, 0) \
	X(DOUBLE_EXPONENTIAL_SMOOTHING, "double_exponential_smoothing", prom_range_trend, PROM_KEY_SF | PROM_KEY_TF)
