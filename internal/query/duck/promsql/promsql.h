// What all C code of this package shares: absent values, memory that is counted against a query's budget, and spec strings.
// Nothing here knows DuckDB, so that the kernels also build into a plain C program (see register.h for DuckDB's side).
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// No product is fused with a sum, or bits would differ from Go's. GCC does not under -std=c11; Clang wants to be told.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

// Room for an error message, its ending zero included.
#define PROM_ERROR_BYTES 256

// Bits of a double that say "no sample at this step". They are Prometheus's stale marker, which no calculation yields.
#define PROM_ABSENT_BITS UINT64_C(0x7ff0000000000002)

static inline uint64_t prom_bits(double v) {
	uint64_t b;
	memcpy(&b, &v, sizeof b);
	return b;
}

static inline double prom_from_bits(uint64_t b) {
	double v;
	memcpy(&v, &b, sizeof v);
	return v;
}

static inline bool prom_is_absent(double v) { return prom_bits(v) == PROM_ABSENT_BITS; }

static inline double prom_absent_value(void) { return prom_from_bits(PROM_ABSENT_BITS); }

// A stored value from its two columns; the rules are those of internal/block.Columns: a finite divisor divides, NaN is the value itself,
// and for +Inf the integer is the value's bits.
static inline double prom_decode(int64_t i, double div) {
	if (div <= 1.7976931348623157e308) {
		return (double)i / div;
	}
	return div != div ? div : prom_from_bits((uint64_t)i);
}

// Memory. A budget counts the bytes of one query, says when it was cancelled, and notes what the query has to know of its execution. It lives until it was closed and its last allocation and
// reference are gone, so that memory which DuckDB frees late is still counted where it belongs. All of this may be used by any thread.
typedef struct prom_budget prom_budget;

// Budget 0: no limit, never cancelled. It needs no reference.
prom_budget *prom_budget_default(void);

// Opens a budget of limit bytes (0: no limit) and stores its id, which is never 0 and never used twice. NULL: out of memory.
prom_budget *prom_budget_open(int64_t limit, int64_t *id);

// Ends the life of an id; the opener's pointer is no longer valid. Returns the bytes that are still allocated.
int64_t prom_budget_close(prom_budget *b);
// Frees what is allocated and returns how much that was, in bytes. Nobody may use it any more: DuckDB forgets the states of an aggregate
// when a function fails as it finalizes them.
int64_t prom_budget_reclaim(prom_budget *b);

// The budget of an id with one more reference, or NULL if no open budget has it. 0 is the default budget.
prom_budget *prom_budget_acquire(int64_t id);
void prom_budget_release(prom_budget *b);

void prom_budget_cancel(prom_budget *b);
bool prom_cancelled(const prom_budget *b);

// Notes that the counts of a histogram were made monotonic by more than the rounding of floats explains.
void prom_budget_set_forced(prom_budget *b);
bool prom_budget_forced(const prom_budget *b);

int64_t prom_budget_limit(const prom_budget *b);
int64_t prom_budget_used(const prom_budget *b);
int64_t prom_budget_peak(const prom_budget *b);

// Bytes that the first refused allocation would have made, 0 if none was refused.
int64_t prom_budget_needed(const prom_budget *b);

// Memory of n bytes, aligned for every type; NULL if the limit or the machine forbids it. prom_realloc with NULL allocates; where it
// returns NULL the old memory stands. prom_free ignores NULL. The memory knows its budget.
void *prom_alloc(prom_budget *b, size_t n);
void *prom_realloc(prom_budget *b, void *p, size_t n);
void prom_free(void *p);

// Says whether n more bytes fit, which are not the budget's to hold; if not, they count as refused.
bool prom_budget_fits(prom_budget *b, size_t n);

// Writes why an allocation of b failed (its limit, or the machine's memory), or that its query was cancelled.
void prom_memory_error(const prom_budget *b, char err[PROM_ERROR_BYTES]);
void prom_cancel_error(char err[PROM_ERROR_BYTES]);

// Keys of a spec, as bits of prom_spec.keys.
enum {
	PROM_KEY_START = 1 << 0,
	PROM_KEY_STEP = 1 << 1,
	PROM_KEY_N = 1 << 2,
	PROM_KEY_RANGE = 1 << 3,
	PROM_KEY_SHIFT = 1 << 4,
	PROM_KEY_PHI = 1 << 5,
	PROM_KEY_SF = 1 << 6,
	PROM_KEY_TF = 1 << 7,
	PROM_KEY_DUR = 1 << 8,
	PROM_KEY_K = 1 << 9,
	PROM_KEY_BUDGET = 1 << 10,
	PROM_KEYS_GRID = PROM_KEY_START | PROM_KEY_STEP | PROM_KEY_N,
};

// Most steps that a grid may have.
#define PROM_MAX_STEPS (1 << 24)

// A parsed spec: "key=value" pairs, one blank between two. Keys that were not written are 0; shift may always be left out.
typedef struct {
	uint32_t keys;       // which keys were written
	int64_t start, step; // ms: step k of the grid is at start + k*step; step > 0
	int64_t n;           // steps, 1..PROM_MAX_STEPS
	int64_t range;       // ms > 0: a window is (t-range, t]
	int64_t shift;       // ms: the evaluation time of a step less the step's time
	double phi, sf, tf;
	double dur; // s
	int64_t k;
	double range_s;      // range in seconds, as Go's Duration.Seconds has it
	prom_budget *budget; // never NULL
} prom_spec;

// Parses text and takes a reference to its budget, which prom_spec_close gives back. Every key of required must be there; allowed are
// those, shift and budget, and the keys in optional. Returns false with a message if the text is wrong; then there is nothing to close.
bool prom_spec_parse(prom_spec *s, const char *text, size_t len, uint32_t required, uint32_t optional, char err[PROM_ERROR_BYTES]);
void prom_spec_close(prom_spec *s);

// Shared specs, for states that outlive a chunk: equal texts share one parsed spec as long as somebody holds it. prom_spec_get returns a
// spec with one more reference, NULL with a message; prom_spec_hold adds references to one that the caller holds; prom_spec_put gives
// some back and ignores NULL.
const prom_spec *prom_spec_get(const char *text, size_t len, uint32_t required, uint32_t optional, char err[PROM_ERROR_BYTES]);
void prom_spec_hold(const prom_spec *s, int64_t refs);
void prom_spec_put(const prom_spec *s, int64_t refs);
