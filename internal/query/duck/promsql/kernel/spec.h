// Specs: the constant parameters of a function, as text and parsed.
#pragma once

#include "budget.h"

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
	PROM_KEY_OFFSET = 1 << 11,
	PROM_KEYS_GRID = PROM_KEY_START | PROM_KEY_STEP | PROM_KEY_N,
};

// Most steps that a grid may have.
#define PROM_MAX_STEPS (1 << 24)

// A parsed spec: "key=value" pairs, one blank between two. Keys that were not written are 0; shift
// and offset may always be left out. The offset is ms by which the windows end before the steps: it
// moves the grid, and shift back.
typedef struct {
	uint32_t keys;       // which keys were written
	int64_t start, step; // ms: step k of the grid is at start + k*step; step > 0
	int64_t n;           // steps, 1..PROM_MAX_STEPS
	int64_t range;       // ms > 0: a window is (t-range, t]
	int64_t offset;      // ms: added to shift and taken from start, once parsed
	int64_t shift;       // ms: the evaluation time of a step less the step's time
	double phi, sf, tf;
	double dur; // s
	int64_t k;
	double range_s;      // range in seconds, as Go's Duration.Seconds has it
	int64_t budget_id;   // as written; 0: the default budget
	prom_budget *budget; // never NULL
} prom_spec;

// A range in seconds, as Go's Duration.Seconds has it.
static inline double prom_range_seconds(int64_t ms) { return (double)(ms / 1000) + (double)(ms % 1000 * 1000000) / 1e9; }

// Most samples that the windows of one call of a user's statement may have together: a call is not
// interrupted.
#define PROM_MAX_WINDOWED (INT64_C(1) << 32)

// Whether the windows of s may have samples each. false: with a message.
bool prom_windows_fit(const prom_spec *s, int64_t samples, char err[PROM_ERROR_BYTES]);

// What is wrong with the values of the keys that s has, NULL if nothing is.
const char *prom_spec_wrong(const prom_spec *s);

// Parses text and takes a reference to its budget, which prom_spec_close gives back. All required
// keys must be present; the optional ones, shift and budget may be. Returns false with a message if
// the text is wrong; then there is nothing to close.
bool prom_spec_parse(prom_spec *s, const char *text, size_t len, uint32_t required, uint32_t optional, char err[PROM_ERROR_BYTES]);
void prom_spec_close(prom_spec *s);
