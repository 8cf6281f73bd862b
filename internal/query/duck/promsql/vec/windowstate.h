// The samples of one window, or of the windows of a grid, (end - range, end]. Independent of
// DuckDB.
#pragma once

#include "../kernel/range.h"

// What a window is, beside its samples: one window, or those that end at the steps of a grid.
typedef struct {
	int64_t end;             // ms, of the last window
	int64_t range;           // ms > 0, from the start of the first window to the end of the last
	int64_t step, n;         // ms > 0 between the ends of windows, and their number
	int64_t window, shift;   // of prom_spec: the length of each, and what is added to their ends to evaluate
	double parameters[2]; // of the function, in the order of its arguments; 0 where it has fewer
} window_shape;

// The state of an aggregate, in DuckDB's memory, which may move it. All zero: no row yet, range is 0
// then. Samples may lie before the window: they are dropped when room is needed.
typedef struct {
	window_shape shape;
	uint32_t n, cap;
	bool unsorted; // the times do not ascend strictly
	int64_t *ts;   // ms
	double *v;     // behind ts, in its allocation
} window_state;

// Gives a state the shape of a row or of another state. A window that slides ends at the last of
// them; otherwise all ends are equal, as ranges and parameters are. false: they differ.
bool window_extend(window_state *s, const window_shape *shape, bool slides);

// Adds n samples to a state that has a shape. false: refused by the budget.
bool window_add(window_state *s, prom_budget *b, const int64_t *ts, const double *v, uint32_t n);

// Sorts the samples by time; of equal times the one that was added last stays. false: refused by
// the budget.
bool window_sort(window_state *s, prom_budget *b);

void window_clear(window_state *s);
