// Functions of a date: the value is a Unix time in seconds, truncated to an integer as Go does on
// amd64, where what does not fit becomes the least integer. The calendar is Go's: proleptic
// Gregorian, with years that begin in March, counted from a March 1st so early that no number is
// negative (see "Computations on Times" in Go's package time). Sums wrap as in Go.
#include "functions.h"

#define DAY 86400
#define ERA_DAYS 146097 // days of 400 years
#define EPOCH_YEARS UINT64_C(292277022400)

// Seconds from the first day of the calendar to 1970: the years before year 1, March to December of
// year 0, then 1969 years.
#define UNIX_TO_ABSOLUTE ((EPOCH_YEARS / 400 * ERA_DAYS + 306 + 719162) * DAY)

typedef struct {
	uint64_t days;    // since the first day of the calendar
	uint32_t seconds; // of the day
} moment;

typedef struct {
	int64_t year;
	uint32_t month, day, year_day; // from 1
	bool leap;
} date;

VEC_INLINE moment moment_of(double v) {
	int64_t unix_seconds = v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN;
	uint64_t seconds = (uint64_t)unix_seconds + UNIX_TO_ABSOLUTE;
	return (moment){seconds / DAY, (uint32_t)(seconds % DAY)};
}

VEC_INLINE date date_of(double v) {
	uint64_t days = moment_of(v).days, era = days / ERA_DAYS;
	uint32_t of_era = (uint32_t)(days % ERA_DAYS);
	uint32_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / (ERA_DAYS - 1)) / 365; // of the era
	uint32_t day = of_era - (365 * year + year / 4 - year / 100);                              // of the year, from March 1st = 0
	uint32_t march = (5 * day + 2) / 153;                                                      // month, March = 0
	bool next = march >= 10;                                                                   // January and February are of the next year
	date d = {.year = (int64_t)(era * 400 - EPOCH_YEARS) + year + next};
	d.month = next ? march - 9 : march + 3;
	d.day = day - (153 * march + 2) / 5 + 1;
	uint32_t calendar = year + next;
	d.leap = calendar % 4 == 0 && (calendar % 100 != 0 || calendar % 400 == 0);
	d.year_day = next ? day - 305 : day + 60 + d.leap;
	return d;
}

VEC_INLINE uint32_t month_days(date d) {
	return d.month == 2 ? 28u + d.leap : 30u + ((d.month + (d.month > 7)) & 1);
}

// March 1st of every 400th year is a Wednesday.
VEC_INLINE double week_day(double v) { return (double)((moment_of(v).days + 3) % 7); }

#define DATE(name, result) \
	static uint64_t name(const double *v, size_t vs, const double *a, size_t as, const double *b, size_t bs, double *out, uint32_t n) { \
		(void)vs, (void)a, (void)as, (void)b, (void)bs; \
		uint64_t any = 0; \
		for (uint32_t k = 0; k < n; k++) { \
			double x = v[k]; \
			uint64_t gone = vec_gone(x); \
			out[k] = vec_choose(gone, x, (double)(result)); \
			any |= ~gone; \
		} \
		return any; \
	}

DATE(do_minute, moment_of(x).seconds / 60 % 60)
DATE(do_hour, moment_of(x).seconds / 3600)
DATE(do_day_of_month, date_of(x).day)
DATE(do_day_of_week, week_day(x))
DATE(do_day_of_year, date_of(x).year_day)
DATE(do_days_in_month, month_days(date_of(x)))
DATE(do_month, date_of(x).month)
DATE(do_year, date_of(x).year)

const vec_math_fn vec_math_dates[] = {
    {"minute", 0, do_minute, VEC_NO_GO},
    {"hour", 0, do_hour, VEC_NO_GO},
    {"day_of_month", 0, do_day_of_month, VEC_NO_GO},
    {"day_of_week", 0, do_day_of_week, VEC_NO_GO},
    {"day_of_year", 0, do_day_of_year, VEC_NO_GO},
    {"days_in_month", 0, do_days_in_month, VEC_NO_GO},
    {"month", 0, do_month, VEC_NO_GO},
    {"year", 0, do_year, VEC_NO_GO},
    {0},
};
